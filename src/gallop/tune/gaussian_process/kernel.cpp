#include "gallop/tune/gaussian_process/kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace gallop::tune {

namespace {

constexpr size_t kLanes = Matrix::kLanes;

// The exponential of a number that is not positive, to a relative error of 1e-15, by the series
// after division by a power of two; here as a call would keep loops from being vectorized.
[[gnu::always_inline]] inline double decay(double x) {
  constexpr double kRounder = 0x1.8p52;  // Its last bits are those of the rounded number added.
  x = x < -700 ? -700 : x;
  const double rounded = x * 0x1.71547652b82fep0 + kRounder;
  const double power = rounded - kRounder;
  const double rest = (x - power * 0x1.62e42fefap-1) - power * 0x1.cf79abc9e3b3ap-40;
  constexpr double kCoefficients[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                                      1.0 / 40320,     1.0 / 5040,     1.0 / 720,     1.0 / 120,
                                      1.0 / 24,        1.0 / 6,        0.5,           1,
                                      1};
  double sum = 1.0 / 6227020800;
  for (const double coefficient : kCoefficients) sum = sum * rest + coefficient;
  const auto shift = std::bit_cast<uint64_t>(rounded) << 52;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(sum) + shift);
}

[[gnu::always_inline]] inline void covariances_here(const Kernel& kernel, const Inputs& inputs,
                                                    size_t count, std::span<const double> point,
                                                    double* __restrict values,
                                                    double* __restrict slopes) {
  for (size_t i = 0; i < count; ++i) values[i] = 0;
  for (size_t d = 0; d < point.size(); ++d) {
    const double* const __restrict others = inputs.values(d);
    const double factor = kernel.inverse_squared_lengths[d], own = point[d];
    if (inputs.is_categorical(d)) {
      for (size_t i = 0; i < count; ++i) values[i] += others[i] == own ? 0 : factor;
    } else {
      for (size_t i = 0; i < count; ++i) {
        const double difference = others[i] - own;
        values[i] += factor * (difference * difference);
      }
    }
  }
  const double scale = kernel.scale;
  if (slopes == nullptr) {
    for (size_t i = 0; i < count; ++i) {
      const double squared = 5 * values[i], root = std::sqrt(squared);
      values[i] = scale * (decay(-root) * (squared / 3 + root + 1));
    }
  } else {
    for (size_t i = 0; i < count; ++i) {
      const double squared = 5 * values[i], root = std::sqrt(squared), share = decay(-root);
      values[i] = scale * (share * (squared / 3 + root + 1));
      slopes[i] = scale * (share * (root + 1) * (-5.0 / 6));
    }
  }
}

// Sums in kLanes parts, as wide as vectors may be.
[[gnu::always_inline]] inline double sum_of(const double (&parts)[kLanes]) {
  return ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
         ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}

[[gnu::always_inline]] inline double weighted_differences(const double* others, double own,
                                                          const double* weights, size_t count) {
  double parts[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) parts[k] += weights[i + k] * (own - others[i + k]);
  }
  for (size_t k = 0; i + k < count; ++k) parts[k] += weights[i + k] * (own - others[i + k]);
  return sum_of(parts);
}

[[gnu::always_inline]] inline double weighted_squares(const double* others, double own,
                                                      const double* weights, size_t count) {
  double parts[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      const double difference = own - others[i + k];
      parts[k] += weights[i + k] * (difference * difference);
    }
  }
  for (size_t k = 0; i + k < count; ++k) {
    const double difference = own - others[i + k];
    parts[k] += weights[i + k] * (difference * difference);
  }
  return sum_of(parts);
}

double weights_of_others(const double* others, double own, const double* weights, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += others[i] == own ? 0 : weights[i];
  return sum;
}

[[gnu::always_inline]] inline void add_distance_gradient_here(
    const Kernel& kernel, const Inputs& inputs, size_t count, std::span<const double> point,
    const double* weights, std::span<double> gradient) {
  for (size_t d = 0; d < point.size(); ++d) {
    if (inputs.is_categorical(d)) continue;
    gradient[d] += 2 * kernel.inverse_squared_lengths[d] *
                   weighted_differences(inputs.values(d), point[d], weights, count);
  }
}

[[gnu::always_inline]] inline void add_length_gradient_here(const Inputs& inputs, size_t count,
                                                            std::span<const double> point,
                                                            const double* weights,
                                                            std::span<double> gradient) {
  for (size_t d = 0; d < point.size(); ++d) {
    gradient[d] += inputs.is_categorical(d)
                       ? weights_of_others(inputs.values(d), point[d], weights, count)
                       : weighted_squares(inputs.values(d), point[d], weights, count);
  }
}

struct Functions {
  decltype(&covariances) find_covariances;
  decltype(&add_distance_gradient) find_distance_gradient;
  decltype(&add_length_gradient) find_length_gradient;
};

// One copy for each kind of machine (see data/normalize.cpp on why not target_clones).
#define GALLOP_KERNEL_FUNCTIONS(name, target)                                                     \
  struct name {                                                                                   \
    target static void values(const Kernel& kernel, const Inputs& inputs, size_t count,           \
                              std::span<const double> point, double* values, double* slopes) {    \
      covariances_here(kernel, inputs, count, point, values, slopes);                             \
    }                                                                                             \
    target static void distance(const Kernel& kernel, const Inputs& inputs, size_t count,         \
                                std::span<const double> point, const double* weights,             \
                                std::span<double> gradient) {                                     \
      add_distance_gradient_here(kernel, inputs, count, point, weights, gradient);                \
    }                                                                                             \
    target static void length(const Inputs& inputs, size_t count, std::span<const double> point,  \
                              const double* weights, std::span<double> gradient) {                \
      add_length_gradient_here(inputs, count, point, weights, gradient);                          \
    }                                                                                             \
  }

GALLOP_KERNEL_FUNCTIONS(Plain, );
#if defined(__x86_64__)
GALLOP_KERNEL_FUNCTIONS(Avx2, [[gnu::target("avx2")]]);
GALLOP_KERNEL_FUNCTIONS(Avx512, [[gnu::target("avx512f,avx512dq,prefer-vector-width=512")]]);
#endif

template <typename Set>
constexpr Functions functions_of() {
  return {Set::values, Set::distance, Set::length};
}

const Functions& best_functions() {
  static const Functions best = [] {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
      return functions_of<Avx512>();
    }
    if (__builtin_cpu_supports("avx2")) return functions_of<Avx2>();
#endif
    return functions_of<Plain>();
  }();
  return best;
}

}  // namespace

std::vector<double> Inputs::point(size_t index) const {
  std::vector<double> point;
  point.reserve(dimensions());
  for (const std::vector<double>& values : values_) point.push_back(values[index]);
  return point;
}

void Inputs::append(std::span<const double> point) {
  for (size_t d = 0; d < dimensions(); ++d) values_[d].push_back(point[d]);
  ++size_;
}

void Inputs::shrink(size_t size) {
  for (std::vector<double>& values : values_) values.resize(size);
  size_ = size;
}

void covariances(const Kernel& kernel, const Inputs& inputs, size_t count,
                 std::span<const double> point, double* values, double* slopes) {
  best_functions().find_covariances(kernel, inputs, count, point, values, slopes);
}

void add_distance_gradient(const Kernel& kernel, const Inputs& inputs, size_t count,
                           std::span<const double> point, const double* weights,
                           std::span<double> gradient) {
  best_functions().find_distance_gradient(kernel, inputs, count, point, weights, gradient);
}

void add_length_gradient(const Inputs& inputs, size_t count, std::span<const double> point,
                         const double* weights, std::span<double> gradient) {
  best_functions().find_length_gradient(inputs, count, point, weights, gradient);
}

}  // namespace gallop::tune
