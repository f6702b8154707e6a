#include "gallop/tune/gaussian_process/kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gallop/tune/best_variant.h"

namespace gallop::tune {

namespace {

constexpr size_t kLanes = Matrix::kLanes;

using Lanes [[gnu::vector_size(kLanes * sizeof(double)), gnu::aligned(sizeof(double))]] = double;
using Words [[gnu::vector_size(kLanes * sizeof(double)), gnu::aligned(sizeof(double))]] = uint64_t;

// exp(x) for x <= 0 to a relative error of 1e-15, by range reduction to a power of two and a
// series.
[[gnu::always_inline]] inline void decay(const double* numbers, double* exponentials) {
  constexpr double kRounder = 0x1.8p52;  // Adding it rounds to an integer in the low bits.
  constexpr double kCoefficients[] = {1.0 / 479001600,
                                      1.0 / 39916800,
                                      1.0 / 3628800,
                                      1.0 / 362880,
                                      1.0 / 40320,
                                      1.0 / 5040,
                                      1.0 / 720,
                                      1.0 / 120,
                                      1.0 / 24,
                                      1.0 / 6,
                                      0.5,
                                      1,
                                      1};
  Lanes x = *reinterpret_cast<const Lanes*>(numbers);
  const Lanes least = x * 0 - 700;
  x = x < least ? least : x;
  const Lanes rounded = x * 0x1.71547652b82fep0 + kRounder;
  const Lanes power = rounded - kRounder;
  const Lanes rest = (x - power * 0x1.62e42fefap-1) - power * 0x1.cf79abc9e3b3ap-40;
  Lanes sum = x * 0 + 1.0 / 6227020800;
  for (const double coefficient : kCoefficients) sum = sum * rest + coefficient;
  const Words scaled = reinterpret_cast<Words>(sum) + (reinterpret_cast<Words>(rounded) << 52);
  *reinterpret_cast<Lanes*>(exponentials) = reinterpret_cast<Lanes>(scaled);
}

constexpr size_t kTogether = Inputs::kTogether;

// The squared distances of a point from the inputs from `begin` on.
[[gnu::always_inline]] inline void squared_distances(const Kernel& kernel, const Inputs& inputs,
                                                     size_t begin, std::span<const double> point,
                                                     double (&distances)[kTogether]) {
  for (double& distance : distances) distance = 0;
  for (size_t d = 0; d < inputs.dimensions(); ++d) {
    const double* const others = inputs.values(d) + begin;
    const double factor = kernel.inverse_squared_lengths[d], own = point[d];
    if (inputs.is_categorical(d)) {
      for (size_t i = 0; i < kTogether; ++i) distances[i] += others[i] == own ? 0 : factor;
    } else {
      for (size_t i = 0; i < kTogether; ++i) {
        const double difference = others[i] - own;
        distances[i] += factor * (difference * difference);
      }
    }
  }
}

[[gnu::always_inline]] inline void covariances_here(const Kernel& kernel, const Inputs& inputs,
                                                    size_t count, std::span<const double> point,
                                                    double* values, double* slopes) {
  double distances[kTogether], shares[kTogether], results[kTogether];
  for (size_t begin = 0; begin < count; begin += kTogether) {
    squared_distances(kernel, inputs, begin, point, distances);
    std::copy_n(distances, std::min(kTogether, count - begin), values + begin);
  }
  for (size_t i = 0; i < count; ++i) values[i] = -std::sqrt(5 * values[i]);
  const double scale = kernel.scale;
  for (size_t begin = 0; begin < count; begin += kTogether) {
    const size_t wanted = std::min(kTogether, count - begin);
    double roots[kTogether] = {};
    std::copy_n(values + begin, wanted, roots);
    for (size_t i = 0; i < kTogether; i += kLanes) decay(roots + i, shares + i);
    for (size_t i = 0; i < kTogether; ++i) {
      results[i] = scale * (shares[i] * (roots[i] * roots[i] * (1.0 / 3) - roots[i] + 1));
    }
    std::copy_n(results, wanted, values + begin);
    if (slopes == nullptr) continue;
    for (size_t i = 0; i < kTogether; ++i) {
      results[i] = scale * (shares[i] * (1 - roots[i]) * (-5.0 / 6));
    }
    std::copy_n(results, wanted, slopes + begin);
  }
}

// Reduces kLanes partial sums.
double sum_of(const double (&parts)[kLanes]) {
  return ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
         ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}

double weighted_differences(const double* others, double own, const double* weights, size_t count) {
  double parts[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) parts[k] += weights[i + k] * (own - others[i + k]);
  }
  for (size_t k = 0; i + k < count; ++k) parts[k] += weights[i + k] * (own - others[i + k]);
  return sum_of(parts);
}

double weighted_squares(const double* others, double own, const double* weights, size_t count) {
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

// One copy per instruction set (see data/normalize.cpp on why not target_clones).
void covariances_plain(const Kernel& kernel, const Inputs& inputs, size_t count,
                       std::span<const double> point, double* values, double* slopes) {
  covariances_here(kernel, inputs, count, point, values, slopes);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void covariances_avx2(const Kernel& kernel, const Inputs& inputs,
                                              size_t count, std::span<const double> point,
                                              double* values, double* slopes) {
  covariances_here(kernel, inputs, count, point, values, slopes);
}

[[gnu::target("avx512f,avx512dq,prefer-vector-width=512")]] void covariances_avx512(
    const Kernel& kernel, const Inputs& inputs, size_t count, std::span<const double> point,
    double* values, double* slopes) {
  covariances_here(kernel, inputs, count, point, values, slopes);
}
#else
constexpr auto covariances_avx2 = covariances_plain, covariances_avx512 = covariances_plain;
#endif

}  // namespace

std::vector<double> Inputs::point(size_t index) const {
  std::vector<double> point;
  point.reserve(values_.size());
  for (const std::vector<double>& values : values_) point.push_back(values[index]);
  return point;
}

void Inputs::append(std::span<const double> point) {
  for (size_t d = 0; d < values_.size(); ++d) {
    if (size_ % kTogether == 0) values_[d].resize(size_ + kTogether);
    values_[d][size_] = point[d];
  }
  ++size_;
}

void Inputs::shrink(size_t size) {
  for (std::vector<double>& values : values_) {
    values.resize((size + kTogether - 1) / kTogether * kTogether);
    std::fill(values.begin() + static_cast<ptrdiff_t>(size), values.end(), 0.0);
  }
  size_ = size;
}

void covariances(const Kernel& kernel, const Inputs& inputs, size_t count,
                 std::span<const double> point, double* values, double* slopes) {
  static const auto best = best_variant(covariances_plain, covariances_avx2, covariances_avx512);
  best(kernel, inputs, count, point, values, slopes);
  if (!inputs.has_times()) return;
  const double* const times = inputs.values(inputs.dimensions());
  const double half_log = 0.5 * std::log1p(-kernel.forgetting);
  for (size_t i = 0; i < count; ++i) {
    const double share = std::exp(half_log * std::abs(times[i] - point.back()));
    values[i] *= share;
    if (slopes != nullptr) slopes[i] *= share;
  }
}

void add_distance_gradient(const Kernel& kernel, const Inputs& inputs, size_t count,
                           std::span<const double> point, const double* weights,
                           std::span<double> gradient) {
  for (size_t d = 0; d < inputs.dimensions(); ++d) {
    if (inputs.is_categorical(d)) continue;
    gradient[d] += 2 * kernel.inverse_squared_lengths[d] *
                   weighted_differences(inputs.values(d), point[d], weights, count);
  }
}

void add_length_gradient(const Inputs& inputs, size_t count, std::span<const double> point,
                         const double* weights, std::span<double> gradient) {
  for (size_t d = 0; d < inputs.dimensions(); ++d) {
    gradient[d] += inputs.is_categorical(d)
                       ? weights_of_others(inputs.values(d), point[d], weights, count)
                       : weighted_squares(inputs.values(d), point[d], weights, count);
  }
}

}  // namespace gallop::tune
