#include "gallop/tune/gaussian_process/acquisition.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gallop/tune/gaussian_process/expected_improvement.h"

namespace gallop::tune {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeastVariance = 1e-12;

// The logarithm of a factor of the acquisition, with its derivatives by mean and deviation.
struct Term {
  double value = 0, by_mean = 0, by_deviation = 0;
};

// The predicted distribution of one quantity at one point.
struct Normal {
  double mean, deviation;
};

// log(exp(a) - exp(b)) for a >= b, with its derivatives.
Term difference(const LogImprovement& a, const LogImprovement& b) {
  if (b.value == -kInfinity) return {a.value, a.by_mean, a.by_deviation};
  const double ratio = std::exp(b.value - a.value);
  if (!(ratio < 1)) return {-kInfinity, 0, 0};
  const double share = 1 / (1 - ratio);
  return {a.value + std::log1p(-ratio), share * (a.by_mean - ratio * b.by_mean),
          share * (a.by_deviation - ratio * b.by_deviation)};
}

// The Monte Carlo average of an acquisition over samples of the pending trials.
class SampledAcquisition : public Acquisition {
 public:
  SampledAcquisition(std::vector<Modeled> losses, std::vector<ModeledLimit> limits)
      : quantities_(std::move(losses)), losses_(quantities_.size()), limits_(std::move(limits)) {
    for (const ModeledLimit& limit : limits_) quantities_.push_back(limit.quantity);
    samples_ = quantities_[0].normals->rows();
    for (size_t q = 0; q < quantities_.size(); ++q) {
      for (size_t s = 0; s < samples_; ++s) {
        drawn_.push_back(quantities_[q].posterior->drawn(normals(q, s)));
      }
    }
  }

  std::vector<double> lengths() const override {
    std::vector<double> lengths;
    for (size_t q = 0; q < losses_; ++q) {
      const auto& inverses = quantities_[q].posterior->kernel().inverse_squared_lengths;
      lengths.resize(inverses.size());
      for (size_t d = 0; d < inverses.size(); ++d) {
        lengths[d] += 1 / std::sqrt(inverses[d]) / static_cast<double>(losses_);
      }
    }
    return lengths;
  }

  std::vector<double> evaluate(const Matrix& points, Matrix* gradients) const override;

 protected:
  // The logarithm of the utility of the losses in one sample; writes its derivatives to `terms`.
  virtual double loss_value(size_t sample, const std::vector<Normal>& losses,
                            std::span<Term> terms) const = 0;

  size_t samples() const { return samples_; }
  size_t pending() const { return quantities_[0].posterior->pending(); }
  // The sampled value of a quantity of a pending trial.
  double drawn(size_t quantity, size_t sample, size_t trial) const {
    return drawn_[quantity * samples_ + sample][trial];
  }
  // Whether a pending trial satisfies the constraints in one sample.
  bool is_allowed(size_t sample, size_t trial) const {
    for (size_t i = 0; i < limits_.size(); ++i) {
      if (drawn(losses_ + i, sample, trial) > limits_[i].most) return false;
    }
    return true;
  }

 private:
  std::span<const double> normals(size_t quantity, size_t sample) const {
    const Matrix& all = *quantities_[quantity].normals;
    return {all.row(sample), all.columns()};
  }
  double value_at(const std::vector<Predictions>& predictions, size_t point,
                  std::vector<PredictionSlopes>* slopes) const;
  double sample_value(const std::vector<Normal>& normals, size_t sample,
                      std::span<Term> terms) const;

  std::vector<Modeled> quantities_;  // Losses first.
  size_t losses_;
  std::vector<ModeledLimit> limits_;
  size_t samples_ = 1;
  std::vector<std::vector<double>> drawn_;
  mutable std::vector<Predictions> predictions_;  // Reused buffers.
};

double SampledAcquisition::sample_value(const std::vector<Normal>& normals, size_t sample,
                                        std::span<Term> terms) const {
  double sum = loss_value(sample, normals, terms);
  for (size_t i = 0; i < limits_.size(); ++i) {
    const auto& [mean, deviation] = normals[losses_ + i];
    const double z = (limits_[i].most - mean) / deviation;
    double slope = 0;
    sum += log_normal_cdf(z, &slope);
    terms[losses_ + i] = {0, -slope / deviation, -slope * z / deviation};
  }
  return sum;
}

double SampledAcquisition::value_at(const std::vector<Predictions>& predictions, size_t point,
                                    std::vector<PredictionSlopes>* slopes) const {
  const size_t count = quantities_.size();
  std::vector<double> deviations, values(samples_);
  std::vector<Normal> normal(count);
  std::vector<Term> terms(samples_ * count);
  for (const Predictions& prediction : predictions) {
    deviations.push_back(std::sqrt(prediction.variances[point] + kLeastVariance));
  }
  for (size_t s = 0; s < samples_; ++s) {
    for (size_t q = 0; q < count; ++q) {
      const std::span<const double> numbers = normals(q, s);
      const double* const shares = predictions[q].shares.row(point);
      double mean = predictions[q].means[point];
      for (size_t r = 0; r < numbers.size(); ++r) mean += numbers[r] * shares[r];
      normal[q] = {mean, deviations[q]};
    }
    values[s] = sample_value(normal, s, {terms.data() + s * count, count});
  }
  const double most = *std::max_element(values.begin(), values.end());
  if (most == -kInfinity) return most;
  double sum = 0;
  for (const double value : values) sum += std::exp(value - most);
  if (slopes != nullptr) {
    for (size_t s = 0; s < samples_; ++s) {
      const double weight = std::exp(values[s] - most) / sum;
      for (size_t q = 0; q < count; ++q) {
        PredictionSlopes& slope = (*slopes)[q];
        const Term& term = terms[s * count + q];
        slope.means[point] += weight * term.by_mean;
        slope.variances[point] += weight * term.by_deviation / (2 * deviations[q]);
        const std::span<const double> numbers = normals(q, s);
        double* const shares = slope.shares.row(point);
        for (size_t r = 0; r < numbers.size(); ++r) shares[r] += weight * term.by_mean * numbers[r];
      }
    }
  }
  return most + std::log(sum / static_cast<double>(samples_));
}

std::vector<double> SampledAcquisition::evaluate(const Matrix& points, Matrix* gradients) const {
  std::vector<Predictions>& predictions = predictions_;
  predictions.resize(quantities_.size());
  std::vector<PredictionSlopes> slopes(quantities_.size());
  for (size_t q = 0; q < quantities_.size(); ++q) {
    quantities_[q].posterior->predict(points, gradients != nullptr, predictions[q]);
    slopes[q] = {std::vector<double>(points.rows(), 0.0), std::vector<double>(points.rows(), 0.0),
                 Matrix(points.rows(), pending())};
  }
  std::vector<double> values;
  for (size_t i = 0; i < points.rows(); ++i) {
    values.push_back(value_at(predictions, i, gradients != nullptr ? &slopes : nullptr));
  }
  if (gradients != nullptr) {
    *gradients = Matrix(points.rows(), points.columns());
    for (size_t q = 0; q < quantities_.size(); ++q) {
      quantities_[q].posterior->add_gradients(predictions[q], slopes[q], *gradients);
    }
  }
  return values;
}

class Improvement final : public SampledAcquisition {
 public:
  Improvement(const Modeled& loss, std::optional<double> best, std::vector<ModeledLimit> limits)
      : SampledAcquisition({loss}, std::move(limits)) {
    if (!best.has_value()) return;
    for (size_t s = 0; s < samples(); ++s) {
      double level = *best;
      for (size_t r = 0; r < pending(); ++r) {
        if (is_allowed(s, r)) level = std::min(level, drawn(0, s, r));
      }
      levels_.push_back(level);
    }
  }

 private:
  double loss_value(size_t sample, const std::vector<Normal>& losses,
                    std::span<Term> terms) const override {
    if (levels_.empty()) return 0;
    const LogImprovement improvement =
        log_improvement_below(levels_[sample], losses[0].mean, losses[0].deviation);
    terms[0] = {0, improvement.by_mean, improvement.by_deviation};
    return improvement.value;
  }

  std::vector<double> levels_;  // Best loss by sample; empty if there is none.
};

class HypervolumeImprovement final : public SampledAcquisition {
 public:
  HypervolumeImprovement(const std::vector<Modeled>& losses,
                         const std::vector<std::vector<double>>& front,
                         const std::vector<double>& reference, std::vector<ModeledLimit> limits)
      : SampledAcquisition(losses, std::move(limits)) {
    for (size_t s = 0; s < samples(); ++s) {
      std::vector<std::vector<double>> rows = front;
      for (size_t r = 0; r < pending(); ++r) {
        if (!is_allowed(s, r)) continue;
        rows.emplace_back();
        for (size_t q = 0; q < losses.size(); ++q) rows.back().push_back(drawn(q, s, r));
      }
      regions_.push_back(undominated_boxes(std::move(rows), reference));
    }
  }

 private:
  double loss_value(size_t sample, const std::vector<Normal>& losses,
                    std::span<Term> terms) const override;

  std::vector<UndominatedBoxes> regions_;  // By sample.
};

double HypervolumeImprovement::loss_value(size_t sample, const std::vector<Normal>& losses,
                                          std::span<Term> terms) const {
  const UndominatedBoxes& region = regions_[sample];
  const size_t objectives = region.levels.size();
  std::vector<std::vector<LogImprovement>> improvements(objectives);
  for (size_t k = 0; k < objectives; ++k) {
    improvements[k].push_back({-kInfinity, 0, 0});
    for (size_t i = 1; i < region.levels[k].size(); ++i) {
      improvements[k].push_back(
          log_improvement_below(region.levels[k][i], losses[k].mean, losses[k].deviation));
    }
  }
  std::vector<double> values;
  std::vector<Term> parts;
  double most = -kInfinity;
  for (const UndominatedBoxes::Box& box : region.boxes) {
    double value = 0;
    for (size_t k = 0; k < objectives; ++k) {
      parts.push_back(difference(improvements[k][box.upper[k]], improvements[k][box.lower[k]]));
      value += parts.back().value;
    }
    values.push_back(value);
    most = std::max(most, value);
  }
  for (size_t k = 0; k < objectives; ++k) terms[k] = {};
  if (most == -kInfinity) return most;
  double sum = 0;
  for (const double value : values) sum += std::exp(value - most);
  for (size_t i = 0; i < values.size(); ++i) {
    const double weight = std::exp(values[i] - most) / sum;
    for (size_t k = 0; k < objectives; ++k) {
      terms[k].by_mean += weight * parts[i * objectives + k].by_mean;
      terms[k].by_deviation += weight * parts[i * objectives + k].by_deviation;
    }
  }
  return most + std::log(sum);
}

}  // namespace

std::unique_ptr<Acquisition> log_expected_improvement(const Modeled& loss,
                                                      std::optional<double> best,
                                                      std::vector<ModeledLimit> limits) {
  return std::make_unique<Improvement>(loss, best, std::move(limits));
}

std::unique_ptr<Acquisition> log_expected_hypervolume_improvement(
    const std::vector<Modeled>& losses, const std::vector<std::vector<double>>& front,
    const std::vector<double>& reference, std::vector<ModeledLimit> limits) {
  return std::make_unique<HypervolumeImprovement>(losses, front, reference, std::move(limits));
}

}  // namespace gallop::tune
