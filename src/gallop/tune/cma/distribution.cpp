#include "gallop/tune/cma/distribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gallop::tune {

namespace {

using Vector = std::vector<double>;

constexpr double kTiny = 1e-8;
constexpr double kLargest = 1e32;  // Upper bound on the step size.

// Convergence criteria.
constexpr double kSameLosses = 1e-12, kSmallSteps = 1e-12, kLargeSteps = 1e4;
constexpr double kWorstCondition = 1e14;

// Constants of the learning rate adaptation.
constexpr double kSignalToNoise = 1.4, kRateChange = 0.1;
constexpr double kMeanMemory = 0.1, kCovarianceMemory = 0.03;

double squared_norm(const Vector& vector) {
  return std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0);
}

double norm(const Vector& vector) { return std::sqrt(squared_norm(vector)); }

/// The expected length of a standard normal vector with `size` elements.
double normal_length(double size) {
  return std::sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size * size));
}

Vector product(const SquareMatrix& matrix, const Vector& vector) {
  Vector result(vector.size());
  for (size_t i = 0; i < vector.size(); ++i) {
    for (size_t j = 0; j < vector.size(); ++j) result[i] += matrix.at(i, j) * vector[j];
  }
  return result;
}

SquareMatrix product(const SquareMatrix& a, const SquareMatrix& b) {
  SquareMatrix result(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < a.size(); ++k) {
      for (size_t j = 0; j < a.size(); ++j) result.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return result;
}

/// The symmetric matrix with these axes whose eigenvalues are a function of the axes' lengths.
template <typename F>
SquareMatrix composed(const EigenSystem& axes, F function) {
  const size_t size = axes.values.size();
  SquareMatrix matrix(size);
  for (size_t k = 0; k < size; ++k) {
    const double value = function(axes.values[k]);
    for (size_t i = 0; i < size; ++i) {
      const double scaled = value * axes.vectors.at(i, k);
      for (size_t j = 0; j < size; ++j) matrix.at(i, j) += scaled * axes.vectors.at(j, k);
    }
  }
  return matrix;
}

/// factor * a + weight * b.
SquareMatrix combined(double factor, const SquareMatrix& a, double weight, const SquareMatrix& b) {
  SquareMatrix result(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a.size(); ++j) {
      result.at(i, j) = factor * a.at(i, j) + weight * b.at(i, j);
    }
  }
  return result;
}

void add_square(SquareMatrix& matrix, double weight, const Vector& vector) {
  for (size_t i = 0; i < vector.size(); ++i) {
    const double scaled = weight * vector[i];
    for (size_t j = 0; j < vector.size(); ++j) matrix.at(i, j) += scaled * vector[j];
  }
}

double effective_count(Vector::const_iterator begin, Vector::const_iterator end) {
  const double sum = std::accumulate(begin, end, 0.0);
  return sum * sum / std::inner_product(begin, end, begin, 0.0);
}

}  // namespace

size_t CmaDistribution::default_population(size_t dimensions) {
  return 4 + static_cast<size_t>(std::floor(3 * std::log(static_cast<double>(dimensions))));
}

CmaDistribution::CmaDistribution(const Start& start)
    : mean_(start.mean),
      weights_(start.population > 0 ? start.population : default_population(mean_.size())),
      sigma_(start.deviation),
      first_sigma_(sigma_),
      covariance_(SquareMatrix::identity(mean_.size())),
      path_sigma_(mean_.size()),
      path_covariance_(mean_.size()),
      axes_{.values = Vector(mean_.size(), 1), .vectors = covariance_},
      adapts_rates_(start.adapt_rates),
      mean_signal_{.memory = kMeanMemory, .average = Vector(mean_.size())},
      covariance_signal_{.memory = kCovarianceMemory,
                         .average = Vector(mean_.size() * mean_.size())} {
  choose_rates();
}

// The default parameters of table 1 of the tutorial; n is the number of dimensions.
void CmaDistribution::choose_rates() {
  const auto n = static_cast<double>(dimensions());
  const auto count = static_cast<double>(population());
  Vector weights;
  for (size_t i = 1; i <= population(); ++i) {
    weights.push_back(std::log((count + 1) / 2) - std::log(static_cast<double>(i)));
  }
  const auto middle = weights.begin() + static_cast<std::ptrdiff_t>(population() / 2);
  const double effective = effective_count(weights.begin(), middle);
  constexpr double kAlpha = 2;
  rates_.effective = effective;
  rates_.path_sigma = (effective + 2) / (n + effective + 5);
  rates_.damping =
      1 + 2 * std::max(0.0, std::sqrt((effective - 1) / (n + 1)) - 1) + rates_.path_sigma;
  rates_.path_covariance = (4 + effective / n) / (n + 4 + 2 * effective / n);
  rates_.rank_one = kAlpha / ((n + 1.3) * (n + 1.3) + effective);
  rates_.rank_many =
      std::min(1 - rates_.rank_one - kTiny, kAlpha * (effective - 2 + 1 / effective) /
                                                ((n + 2) * (n + 2) + kAlpha * effective / 2));
  const double negative_effective = effective_count(middle, weights.end());
  choose_weights(std::move(weights), negative_effective);
}

void CmaDistribution::choose_weights(Vector weights, double negative_effective) {
  const auto n = static_cast<double>(dimensions());
  const double one = rates_.rank_one, many = rates_.rank_many;
  const double share =
      std::min({1 + one / many, 1 + 2 * negative_effective / (rates_.effective + 2),
                (1 - one - many) / (n * many)});
  double positive = 0, negative = 0;
  for (const double weight : weights) (weight > 0 ? positive : negative) += std::abs(weight);
  for (double& weight : weights) weight *= weight > 0 ? 1 / positive : share / negative;
  weights_ = std::move(weights);
}

double CmaDistribution::deviation(size_t dimension) const {
  return sigma_ * std::sqrt(covariance_.at(dimension, dimension));
}

std::vector<double> CmaDistribution::sample(Random& random) const {
  Vector point = mean_;
  for (size_t k = 0; k < dimensions(); ++k) {
    const double length = sigma_ * axes_.values[k] * random.normal();
    for (size_t i = 0; i < dimensions(); ++i) point[i] += length * axes_.vectors.at(i, k);
  }
  return point;
}

std::vector<double> CmaDistribution::injected(std::vector<double> point) const {
  Vector step;
  for (size_t i = 0; i < dimensions(); ++i) step.push_back((point[i] - mean_[i]) / sigma_);
  const auto n = static_cast<double>(dimensions());
  const double longest = std::sqrt(n) + 2 * n / (n + 2);
  const double factor = std::min(1.0, longest / norm(whitened(step)));
  for (size_t i = 0; i < dimensions(); ++i) point[i] = mean_[i] + factor * sigma_ * step[i];
  return point;
}

/// C^(-1/2) times the step: coordinates in which the distribution is isotropic.
Vector CmaDistribution::whitened(const Vector& step) const {
  Vector result(dimensions());
  for (size_t k = 0; k < dimensions(); ++k) {
    double along = 0;
    for (size_t i = 0; i < dimensions(); ++i) along += axes_.vectors.at(i, k) * step[i];
    along /= axes_.values[k];
    for (size_t i = 0; i < dimensions(); ++i) result[i] += along * axes_.vectors.at(i, k);
  }
  return result;
}

void CmaDistribution::tell(const std::vector<Solution>& solutions) {
  ++generation_;
  extremes_.push_back(solutions.front().loss);
  extremes_.push_back(solutions.back().loss);
  std::vector<Vector> steps;
  Vector step(dimensions());  // Weighted mean of the steps.
  for (const Solution& solution : solutions) {
    Vector& own = steps.emplace_back();
    for (size_t i = 0; i < dimensions(); ++i) {
      own.push_back((solution.point[i] - mean_[i]) / sigma_);
      if (steps.size() <= population() / 2) step[i] += weights_[steps.size() - 1] * own[i];
    }
  }
  const Vector old_mean = mean_;
  const double old_sigma = sigma_;
  const SquareMatrix old_covariance = covariance_;
  const SquareMatrix old_inverse_root = composed(axes_, [](double length) { return 1 / length; });
  for (size_t i = 0; i < dimensions(); ++i) mean_[i] += sigma_ * step[i];
  bool is_stalled = false;
  move_paths(step, is_stalled);
  move_covariance(steps, is_stalled);
  if (adapts_rates_) adapt_rates(old_mean, old_sigma, old_covariance, old_inverse_root);
  decompose();
}

/// Updates the evolution paths. `is_stalled` (h_sigma of the tutorial) becomes true if the path of
/// the step size is too long; the covariance's path then does not follow.
void CmaDistribution::move_paths(const Vector& step, bool& is_stalled) {
  const auto n = static_cast<double>(dimensions());
  const double rate = rates_.path_sigma;
  const Vector round_step = whitened(step);
  for (size_t i = 0; i < dimensions(); ++i) {
    path_sigma_[i] = (1 - rate) * path_sigma_[i] +
                     std::sqrt(rate * (2 - rate) * rates_.effective) * round_step[i];
  }
  const double length = norm(path_sigma_);
  sigma_ *= std::exp(rate / rates_.damping * (length / normal_length(n) - 1));
  sigma_ = std::min(sigma_, kLargest);
  const double start = std::sqrt(1 - std::pow(1 - rate, 2 * static_cast<double>(generation_ + 1)));
  is_stalled = length / start >= (1.4 + 2 / (n + 1)) * normal_length(n);
  const double other = rates_.path_covariance;
  for (size_t i = 0; i < dimensions(); ++i) {
    path_covariance_[i] *= 1 - other;
    if (!is_stalled) {
      path_covariance_[i] += std::sqrt(other * (2 - other) * rates_.effective) * step[i];
    }
  }
}

void CmaDistribution::move_covariance(const std::vector<Vector>& steps, bool is_stalled) {
  const auto n = static_cast<double>(dimensions());
  const double one = rates_.rank_one, many = rates_.rank_many, path = rates_.path_covariance;
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  const double correction = is_stalled ? one * path * (2 - path) : 0;
  SquareMatrix added(dimensions());
  add_square(added, one, path_covariance_);
  for (size_t i = 0; i < steps.size(); ++i) {
    double weight = weights_[i];
    if (weight < 0) weight *= n / (squared_norm(whitened(steps[i])) + kTiny);
    add_square(added, many * weight, steps[i]);
  }
  covariance_ = combined(1 + correction - one - many * sum, covariance_, 1, added);
}

void CmaDistribution::decompose() {
  axes_ = symmetric_eigen(covariance_);
  bool is_repaired = false;
  for (double& value : axes_.values) {
    is_repaired |= !(value > 0);
    value = std::sqrt(value > 0 ? value : kTiny);
  }
  if (is_repaired) covariance_ = composed(axes_, [](double length) { return length * length; });
}

void CmaDistribution::adapt_rate(Signal& signal, const Vector& step) const {
  const double memory = signal.memory;
  for (size_t i = 0; i < step.size(); ++i) {
    signal.average[i] = (1 - memory) * signal.average[i] + memory * step[i];
  }
  signal.variance = (1 - memory) * signal.variance + memory * squared_norm(step);
  const double average = squared_norm(signal.average);
  const double ratio =
      (average - memory / (2 - memory) * signal.variance) / (signal.variance - average);
  const double change = std::clamp(ratio / kSignalToNoise / signal.rate - 1, -1.0, 1.0);
  signal.rate *= std::exp(std::min(kRateChange * signal.rate, memory) * change);
  signal.rate = std::min(signal.rate, 1.0);
}

void CmaDistribution::adapt_rates(const Vector& old_mean, double old_sigma,
                                  const SquareMatrix& old_covariance,
                                  const SquareMatrix& old_inverse_root) {
  const auto n = static_cast<double>(dimensions());
  const double old_variance = old_sigma * old_sigma;
  const SquareMatrix change = combined(sigma_ * sigma_, covariance_, -old_variance, old_covariance);
  Vector step;
  for (size_t i = 0; i < dimensions(); ++i) step.push_back((mean_[i] - old_mean[i]) / old_sigma);
  Vector covariance_step = product(product(old_inverse_root, change), old_inverse_root).values();
  for (double& value : covariance_step) value /= old_variance * std::sqrt(2.0);

  const double old_rate = mean_signal_.rate;
  adapt_rate(mean_signal_, product(old_inverse_root, step));
  adapt_rate(covariance_signal_, covariance_step);

  for (size_t i = 0; i < dimensions(); ++i) {
    mean_[i] = old_mean[i] + mean_signal_.rate * (mean_[i] - old_mean[i]);
  }
  const SquareMatrix whole =
      combined(old_variance, old_covariance, covariance_signal_.rate, change);
  double logarithms = 0;
  for (const double value : symmetric_eigen(whole).values) {
    logarithms += std::log(std::max(value, kTiny * old_variance));
  }
  sigma_ = std::min(std::exp(logarithms / 2 / n), kLargest);
  covariance_ = combined(1 / (sigma_ * sigma_), whole, 0, whole);
  sigma_ *= old_rate / mean_signal_.rate;
}

bool CmaDistribution::has_flat_losses() const {
  const auto n = static_cast<double>(dimensions());
  const auto wanted =
      10 + static_cast<size_t>(std::ceil(30 * n / static_cast<double>(population())));
  if (generation_ <= wanted) return false;
  const auto begin = extremes_.end() - static_cast<std::ptrdiff_t>(2 * wanted);
  const auto [least, most] = std::minmax_element(begin, extremes_.end());
  return *most - *least < kSameLosses;
}

/// Whether steps along a coordinate or a principal axis no longer change the mean by rounding.
bool CmaDistribution::has_lost_precision() const {
  const size_t axis = generation_ % dimensions();
  bool is_axis_lost = true;
  for (size_t i = 0; i < dimensions(); ++i) {
    if (mean_[i] == mean_[i] + 0.2 * deviation(i)) return true;
    const double step = 0.1 * sigma_ * axes_.values[axis] * axes_.vectors.at(i, axis);
    is_axis_lost &= mean_[i] == mean_[i] + step;
  }
  return is_axis_lost;
}

bool CmaDistribution::has_converged() const {
  const auto [shortest, longest] = std::minmax_element(axes_.values.begin(), axes_.values.end());
  bool is_small = true;
  for (size_t i = 0; i < dimensions(); ++i) {
    is_small &= sigma_ * std::max(covariance_.at(i, i), std::abs(path_covariance_[i])) <
                kSmallSteps * first_sigma_;
  }
  return is_small || sigma_ * *longest > kLargeSteps * first_sigma_ ||
         *longest > kWorstCondition * *shortest || has_flat_losses() || has_lost_precision();
}

}  // namespace gallop::tune
