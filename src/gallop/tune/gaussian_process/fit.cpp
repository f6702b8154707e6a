#include "gallop/tune/gaussian_process/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gallop/tune/gaussian_process/matrix.h"

namespace gallop::tune {

namespace {

constexpr size_t kOtherNumbers =
    3;  // Numbers of a kernel besides the lengths: scale, noise, forgetting.
constexpr double kFarthest = 20;  // Bound on absolute logarithms; avoids overflow.
// Stops when the log-likelihood improves by less than 0.01 %.
constexpr LbfgsLimits kLimits{
    .evaluations = KernelFit::kMostEvaluations, .gradient = 1e-2, .relative_decrease = 1e-5};

std::vector<double> encoded(const Kernel& kernel) {
  std::vector<double> numbers;
  for (const double value : kernel.inverse_squared_lengths) numbers.push_back(std::log(value));
  numbers.push_back(std::log(kernel.scale));
  // Noise at its minimum starts 1% above it, so that its logarithm is finite and it can grow.
  numbers.push_back(std::log(std::max(kernel.noise - 0.99 * kLeastNoise, 0.01 * kLeastNoise)));
  numbers.push_back(std::log(kernel.forgetting / (1 - kernel.forgetting)));
  return numbers;
}

Kernel decoded(std::span<const double> numbers, bool is_exact) {
  const size_t dimensions = numbers.size() - kOtherNumbers;
  Kernel kernel{.inverse_squared_lengths = {},
                .scale = std::exp(numbers[dimensions]),
                .noise = is_exact ? kLeastNoise : kLeastNoise + std::exp(numbers[dimensions + 1]),
                .forgetting = 1 / (1 + std::exp(-numbers[dimensions + 2]))};
  for (size_t d = 0; d < dimensions; ++d) {
    kernel.inverse_squared_lengths.push_back(std::exp(numbers[d]));
  }
  return kernel;
}

}  // namespace

double log_prior(const Kernel& kernel, std::vector<double>* gradient) {
  double sum =
      std::log(kernel.scale) - kernel.scale + 0.1 * std::log(kernel.noise) - 30 * kernel.noise;
  for (const double value : kernel.inverse_squared_lengths) sum -= 0.1 / value + 0.1 * value;
  if (gradient != nullptr) {
    gradient->clear();
    for (const double value : kernel.inverse_squared_lengths) {
      gradient->push_back(0.1 / (value * value) - 0.1);
    }
    gradient->push_back(1 / kernel.scale - 1);
    gradient->push_back(0.1 / kernel.noise - 30);
    gradient->push_back(0);
  }
  return sum;
}

double log_likelihood(const Kernel& kernel, const Inputs& inputs, std::span<const double> values,
                      std::vector<double>* gradient, LikelihoodMemory& memory) {
  const size_t size = inputs.size(), dimensions = inputs.dimensions();
  auto& [factor, covariance, slopes, inverse_transposed, inverse] = memory;
  factor.reset(size, size);
  slopes.reset(size, size);
  for (size_t i = 0; i < size; ++i) {
    covariances(kernel, inputs, i, inputs.point(i), factor.row(i), slopes.row(i));
    factor.at(i, i) = kernel.scale + kernel.noise;
  }
  if (gradient != nullptr) covariance = factor;
  if (!factor_cholesky(factor, inverse_transposed)) {
    return -std::numeric_limits<double>::infinity();
  }
  std::vector<double> roots(size, 0.0), weights(size, 0.0);
  double sum = 0;
  for (size_t j = 0; j < size; ++j) {
    const double* const row = inverse_transposed.row(j);
    for (size_t i = j; i < size; ++i) roots[i] += row[i] * values[j];
    sum -= std::log(factor.at(j, j));
  }
  for (size_t j = 0; j < size; ++j) {
    const double* const row = inverse_transposed.row(j);
    for (size_t i = j; i < size; ++i) weights[j] += row[i] * roots[i];
    sum -= 0.5 * roots[j] * roots[j];
  }
  if (gradient == nullptr) return sum;

  // Half the trace of (w w^T - K^-1) dK, summed over one triangle, as the matrices are symmetric.
  gradient->assign(dimensions + kOtherNumbers, 0.0);
  const double* const times = inputs.has_times() ? inputs.values(dimensions) : nullptr;
  multiply_by_transposed(inverse_transposed, inverse);
  for (size_t i = 0; i < size; ++i) {
    double by_scale = 0;
    for (size_t j = 0; j < i; ++j) {
      const double share = weights[i] * weights[j] - inverse.at(i, j);
      by_scale += share * covariance.at(i, j);
      if (times != nullptr) {
        gradient->back() -= share * covariance.at(i, j) * 0.5 * std::abs(times[i] - times[j]) /
                            (1 - kernel.forgetting);
      }
      slopes.at(i, j) *= share;
    }
    const double own = weights[i] * weights[i] - inverse.at(i, i);
    (*gradient)[dimensions] += by_scale / kernel.scale + 0.5 * own;
    (*gradient)[dimensions + 1] += 0.5 * own;
    add_length_gradient(inputs, i, inputs.point(i), slopes.row(i), *gradient);
  }
  return sum;
}

Kernel KernelFit::default_kernel(size_t dimensions) {
  return {.inverse_squared_lengths = std::vector<double>(dimensions, 1.0), .forgetting = 0.1};
}

KernelFit::KernelFit(Inputs inputs, std::vector<double> values, const Kernel& start, bool is_exact)
    : inputs_(std::move(inputs)),
      values_(std::move(values)),
      is_exact_(is_exact),
      search_(encoded(start), std::vector<double>(inputs_.dimensions() + kOtherNumbers, -kFarthest),
              std::vector<double>(inputs_.dimensions() + kOtherNumbers, kFarthest), kLimits) {}

void KernelFit::step() {
  const Kernel kernel = decoded(search_.wanted(), is_exact_);
  std::vector<double> likelihood_gradient, prior_gradient;
  const double value = -log_likelihood(kernel, inputs_, values_, &likelihood_gradient, memory_) -
                       log_prior(kernel, &prior_gradient);
  std::vector<double> gradient(prior_gradient.size(), 0.0);
  if (std::isfinite(value)) {
    // The search runs over logarithms, and over the log-odds of forgetting (chain rule).
    std::vector<double> factors = kernel.inverse_squared_lengths;
    factors.insert(factors.end(), {kernel.scale, std::exp(search_.wanted()[factors.size() + 1]),
                                   kernel.forgetting * (1 - kernel.forgetting)});
    for (size_t d = 0; d < gradient.size(); ++d) {
      gradient[d] = -(likelihood_gradient[d] + prior_gradient[d]) * factors[d];
    }
    if (is_exact_) gradient[inputs_.dimensions() + 1] = 0;
  }
  search_.tell(value, gradient);
}

Kernel KernelFit::kernel() const { return decoded(search_.best(), is_exact_); }

}  // namespace gallop::tune
