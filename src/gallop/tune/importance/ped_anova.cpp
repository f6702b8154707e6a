#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/tune/importance/history.h"
#include "gallop/tune/importance/importance.h"
#include "gallop/tune/normal.h"
#include "gallop/tune/pareto/pareto.h"

namespace gallop::tune {

namespace {

using Trials = std::vector<const Trial*>;
using Vector = std::vector<double>;

constexpr size_t kCells = 50;              // Maximum number of cells of an interval.
constexpr size_t kFewestTrials = 2;        // With an active value of the parameter.
constexpr double kPriorWeight = 1;         // Relative to 1 for each trial.
constexpr double kTiny = 1e-12;            // Added to each probability.
constexpr double kNarrowest = 0.5 / 1.64;  // 90% of the kernel's mass is in its cell.

/// The discretization of a parameter; the cells of an interval are equally wide on its scale.
class Cells {
 public:
  explicit Cells(const Parameter& parameter) : interval_(parameter.interval()) {
    if (interval_ == nullptr) {
      count_ = parameter.choices()->values.size();
      return;
    }
    const bool is_linear = interval_->scale == Scale::kLinear;
    low_ = coordinate(*interval_, interval_->low);
    const int64_t values = tune::count(*interval_);
    double cells = kCells;
    if (values > 0) {
      // On nonlinear scales, values are denser at one end.
      const auto all = static_cast<double>(values);
      cells = std::min(cells, is_linear ? all : std::ceil(std::log2(all)) + 1);
    }
    count_ = static_cast<size_t>(cells);
    const double high =
        values > 0 ? value_on_grid(*interval_, static_cast<double>(values - 1)) : interval_->high;
    width_ = (coordinate(*interval_, high) - low_) / (cells - 1);
  }

  size_t count() const { return count_; }
  bool is_interval() const { return interval_ != nullptr; }
  size_t cell(double value) const {
    if (interval_ == nullptr) return static_cast<size_t>(value);
    const double place = std::ceil((coordinate(*interval_, value) - low_) / width_ - 0.5);
    return static_cast<size_t>(std::clamp(place, 0.0, static_cast<double>(count_ - 1)));
  }

 private:
  const Interval* interval_;
  size_t count_ = 0;
  double low_ = 0, width_ = 0;
};

/// The bandwidth of the kernels in cells by Scott's rule ("Multivariate density estimation", 1992),
/// given the number of trials in each cell.
double kernel_width(const std::vector<int64_t>& counts) {
  const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const auto total = static_cast<double>(all);
  double mean = 0, squares = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    mean += static_cast<double>(counts[i]) * static_cast<double>(i) / total;
  }
  std::vector<size_t> cells;
  std::vector<int64_t> sums;  // Cumulative counts.
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const double distance = static_cast<double>(i) - mean;
    squares += static_cast<double>(counts[i]) * distance * distance;
    cells.push_back(i);
    sums.push_back((sums.empty() ? 0 : sums.back()) + counts[i]);
  }
  const double deviation = std::sqrt(squares / std::max(1.0, total - 1));
  const auto first = std::lower_bound(sums.begin(), sums.end(), all / 4) - sums.begin();
  const auto third =
      std::min(std::upper_bound(sums.begin(), sums.end(), all * 3 / 4) - sums.begin(),
               static_cast<std::ptrdiff_t>(cells.size()) - 1);
  const auto between = static_cast<double>(cells[static_cast<size_t>(third)]) -
                       static_cast<double>(cells[static_cast<size_t>(first)]);
  return std::max(1.059 * std::min(between / 1.34, deviation) * std::pow(total, -0.2), kNarrowest);
}

/// The probabilities of `count` cells under a normal distribution truncated at both ends.
Vector normal_kernel(size_t count, double mean, double deviation) {
  const auto below = [&](double cell) { return normal_cdf((cell - mean) / deviation); };
  const double all = below(static_cast<double>(count) - 0.5) - below(-0.5);
  Vector shares;
  for (size_t i = 0; i < count; ++i) {
    const auto cell = static_cast<double>(i);
    shares.push_back((below(cell + 0.5) - below(cell - 0.5)) / all);
  }
  return shares;
}

/// The probability of each cell: a kernel for each trial, and the prior.
Vector density(const Cells& cells, const std::vector<int64_t>& counts) {
  const auto size = static_cast<double>(cells.count());
  const auto used = static_cast<double>(
      std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; }));
  const double total =
      kPriorWeight + static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const double width = cells.is_interval() ? kernel_width(counts) : 0;
  Vector result = cells.is_interval() ? normal_kernel(cells.count(), (size - 1) / 2, size)
                                      : Vector(cells.count(), 1 / size);
  for (double& share : result) share *= kPriorWeight / total;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    Vector kernel;
    if (cells.is_interval()) {
      kernel = normal_kernel(cells.count(), static_cast<double>(i), width);
    } else {
      const double others = kPriorWeight / (used + 1);
      kernel.assign(cells.count(), others / (1 + size * others));
      kernel[i] = (1 + others) / (1 + size * others);
    }
    const double weight = static_cast<double>(counts[i]) / total;
    for (size_t j = 0; j < kernel.size(); ++j) result[j] += weight * kernel[j];
  }
  for (double& share : result) share += kTiny;
  return result;
}

Vector density(const Cells& cells, size_t index, const Trials& trials) {
  std::vector<int64_t> counts(cells.count());
  for (const Trial* const trial : trials) ++counts[cells.cell(trial->point[index])];
  return density(cells, counts);
}

/// The best fraction of the trials; with a single ranking loss, including all ties at its end.
Trials best_of(const Trials& trials, double share, std::optional<size_t> objective) {
  if (share == 1) return trials;
  const auto count = static_cast<size_t>(std::ceil(share * static_cast<double>(trials.size())));
  Trials best;
  if (!objective) {
    LossRows losses;
    for (const Trial* const trial : trials) losses.push_back(trial->losses);
    for (const size_t index : best_rows(losses, count)) best.push_back(trials[index]);
    return best;
  }
  Vector losses;
  for (const Trial* const trial : trials) losses.push_back(trial->losses[*objective]);
  const auto last = losses.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(losses.begin(), last, losses.end());
  std::copy_if(trials.begin(), trials.end(), std::back_inserter(best),
               [&](const Trial* trial) { return trial->losses[*objective] <= *last; });
  return best;
}

/// Pearson's chi-squared divergence of two densities.
double divergence(const Vector& target, const Vector& region) {
  double sum = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    const double difference = target[i] / region[i] - 1;
    sum += region[i] * difference * difference;
  }
  return sum;
}

double importance_of(const Parameter& parameter, size_t index, const Trials& target,
                     const Trials& region, bool local) {
  const auto with_value = [&](const Trials& trials) {
    Trials active;
    for (const Trial* const trial : trials) {
      if (!std::isnan(trial->point[index])) active.push_back(trial);
    }
    return active;
  };
  const Trials active_region = with_value(region), active_target = with_value(target);
  if (active_region.size() < kFewestTrials || active_target.empty()) return 0;
  const auto share_of = [](const Trials& part, const Trials& all) {
    return static_cast<double>(part.size()) / static_cast<double>(all.size());
  };
  const double target_share = share_of(active_target, target);
  const double region_share = share_of(active_region, region);
  const Cells cells(parameter);
  const Vector base = local ? density(cells, index, active_region)
                            : Vector(cells.count(), 1 / static_cast<double>(cells.count()));
  return target_share * target_share / region_share *
         divergence(density(cells, index, active_target), base);
}

}  // namespace

std::vector<double> ped_anova(const Study& study, const PedAnovaOptions& options) {
  if (!(options.target > 0 && options.target < options.region && options.region <= 1)) {
    throw UsageError(fmt::format("importance: target {} and region {}: 0 < target < region <= 1",
                                 options.target, options.region));
  }
  check_objective(study, options.objective);
  const std::optional<size_t> objective =
      study.objectives() == 1 ? std::optional<size_t>(0) : options.objective;
  std::vector<double> importance(study.space().size());
  const Trials trials = judged_trials(study, objective);
  if (trials.size() < 2) return as_shares(importance);
  const Trials target = best_of(trials, options.target, objective);
  const Trials region = best_of(trials, options.region, objective);
  for (size_t i = 0; i < importance.size(); ++i) {
    if (!is_variable(study.space()[i])) continue;
    importance[i] = importance_of(study.space()[i], i, target, region, options.local);
  }
  return as_shares(importance);
}

}  // namespace gallop::tune
