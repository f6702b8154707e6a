#include "gallop/tune/gaussian_process/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gallop::tune {

namespace {

constexpr size_t kChanges = 10;
constexpr int kLineEvaluations = 20;
constexpr double kDecrease = 1e-4;  // Sufficient decrease (Armijo condition).
constexpr double kMostStretch = 1024;

}  // namespace

Lbfgs::Lbfgs(std::vector<double> start, std::vector<double> lower, std::vector<double> upper,
             const LbfgsLimits& limits)
    : lower_(std::move(lower)),
      upper_(std::move(upper)),
      limits_(limits),
      point_(std::move(start)),
      value_(std::numeric_limits<double>::infinity()) {
  for (size_t i = 0; i < point_.size(); ++i) point_[i] = bounded(i, point_[i]);
  wanted_ = point_;
}

double Lbfgs::bounded(size_t index, double value) const {
  if (!lower_.empty()) value = std::max(value, lower_[index]);
  if (!upper_.empty()) value = std::min(value, upper_[index]);
  return value;
}

bool Lbfgs::is_free(size_t index) const {
  if (!lower_.empty() && point_[index] <= lower_[index] && gradient_[index] > 0) return false;
  return upper_.empty() || point_[index] < upper_[index] || gradient_[index] >= 0;
}

double Lbfgs::projected_gradient() const {
  double most = 0;
  for (size_t i = 0; i < point_.size(); ++i) {
    most = std::max(most, std::abs(bounded(i, point_[i] - gradient_[i]) - point_[i]));
  }
  return most;
}

// The quasi-Newton direction in the free coordinates, those not at an active bound.
std::vector<double> Lbfgs::direction() const {
  std::vector<char> free(point_.size());
  std::vector<double> result(point_.size(), 0.0);
  for (size_t i = 0; i < point_.size(); ++i) {
    free[i] = static_cast<char>(is_free(i));
    if (free[i] != 0) result[i] = -gradient_[i];
  }
  const auto product = [&free](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += free[i] != 0 ? a[i] * b[i] : 0;
    return sum;
  };
  std::vector<double> shares(changes_.size(), 0.0), products(changes_.size(), 0.0);
  double scale = 0;
  for (size_t k = changes_.size(); k-- > 0;) {
    const Change& change = changes_[k];
    products[k] = product(change.step, change.gradient);
    if (products[k] <= 1e-12 * change.product) continue;
    if (scale == 0) scale = products[k] / product(change.gradient, change.gradient);
    shares[k] = product(change.step, result) / products[k];
    for (size_t i = 0; i < result.size(); ++i) result[i] -= shares[k] * change.gradient[i];
  }
  if (scale > 0) {
    for (double& value : result) value *= scale;
  }
  for (size_t k = 0; k < changes_.size(); ++k) {
    const Change& change = changes_[k];
    if (products[k] <= 1e-12 * change.product) continue;
    const double share = shares[k] - product(change.gradient, result) / products[k];
    for (size_t i = 0; i < result.size(); ++i) result[i] += share * change.step[i];
  }
  for (size_t i = 0; i < result.size(); ++i) result[i] = free[i] != 0 ? result[i] : 0;
  return result;
}

void Lbfgs::begin_line() {
  if (projected_gradient() <= limits_.gradient || evaluations_ >= limits_.evaluations) {
    done_ = true;
    return;
  }
  direction_ = direction();
  double slope = 0, squares = 0;
  for (size_t i = 0; i < point_.size(); ++i) {
    slope += direction_[i] * gradient_[i];
    if (is_free(i)) squares += gradient_[i] * gradient_[i];
  }
  if (!(slope < 0)) {
    changes_.clear();
    direction_ = direction();
  }
  line_evaluations_ = 0;
  want(stretch_ * (changes_.empty() ? std::min(1.0, 1 / std::sqrt(squares)) : 1));
}

void Lbfgs::want(double length) {
  length_ = length;
  for (size_t i = 0; i < point_.size(); ++i) {
    wanted_[i] = bounded(i, point_[i] + length * direction_[i]);
  }
}

void Lbfgs::accept(double value, std::span<const double> gradient) {
  Change change{std::vector<double>(point_.size()), std::vector<double>(point_.size()), 0};
  double squares = 0;
  for (size_t i = 0; i < point_.size(); ++i) {
    change.step[i] = wanted_[i] - point_[i];
    change.gradient[i] = gradient[i] - gradient_[i];
    change.product += change.step[i] * change.gradient[i];
    squares += change.gradient[i] * change.gradient[i];
  }
  if (change.product > 2.2e-16 * squares) {
    changes_.push_back(std::move(change));
    if (changes_.size() > kChanges) changes_.pop_front();
    stretch_ = 1;
  } else {
    stretch_ = std::min(2 * stretch_, kMostStretch);
  }
  const double scale = std::max({std::abs(value), std::abs(value_), 1.0});
  done_ = value_ - value <= limits_.relative_decrease * scale;
  point_ = wanted_;
  value_ = value;
  gradient_.assign(gradient.begin(), gradient.end());
}

// Backtracks to the minimum of the interpolating parabola.
void Lbfgs::shorten(double value, double slope) {
  if (line_evaluations_ < kLineEvaluations) {
    const double rise = value - value_ - slope;
    const double share = std::isfinite(value) && rise > 0 ? -slope / (2 * rise) : 0.25;
    want(length_ * std::clamp(share, 0.1, 0.5));
  } else if (!changes_.empty()) {
    changes_.clear();  // Restarts with steepest descent.
    begin_line();
  } else {
    done_ = true;
  }
}

void Lbfgs::tell(double value, std::span<const double> gradient) {
  ++evaluations_;
  if (!started_) {
    if (!std::isfinite(value)) {
      done_ = true;
      return;
    }
    started_ = true;
    value_ = value;
    gradient_.assign(gradient.begin(), gradient.end());
    return begin_line();
  }
  ++line_evaluations_;
  double slope = 0;  // Directional derivative along the step.
  for (size_t i = 0; i < point_.size(); ++i) slope += gradient_[i] * (wanted_[i] - point_[i]);
  const bool is_lower = std::isfinite(value) && value <= value_ + kDecrease * slope && slope < 0;
  if (!is_lower) {
    if (evaluations_ >= limits_.evaluations) {
      done_ = true;
      return;
    }
    return shorten(value, slope);
  }
  accept(value, gradient);
  if (!done_) begin_line();
}

}  // namespace gallop::tune
