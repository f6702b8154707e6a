#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gallop/kernel/cpu/update.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {

inline std::vector<float> numbers(int64_t count, uint64_t seed, double spread = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, spread);
  std::vector<float> result(static_cast<size_t>(count));
  for (float& number : result) number = static_cast<float>(normal(random));
  return result;
}

/// The coefficients of a rule for a tensor, common to all chunks.
inline void begin_update(const UpdateRule& rule, UpdateTensor& tensor) {
  double factors[kMostFactors], next[kMostRunning];
  rule.begin(tensor.moment, factors, next);
  for (int i = 0; i < rule.factors; ++i) tensor.factors[i] = static_cast<float>(factors[i]);
}

/// Updates by each instruction set.
class UpdateTest : public IsaTest {
 protected:
  UpdateKernels kernels() const { return kernels_for<UpdateKernels>(GetParam()); }

  /// All of an update of one chunk; returns the sum of the gradients' squares.
  double update_chunk(const UpdateRule& rule, UpdateTensor tensor) const {
    const UpdateKernelFunction& body = kernels().rules[rule.number];
    if (body.measure != nullptr) {
      const MeasuredSums sums = body.measure(tensor);
      tensor.factors[rule.factors] = static_cast<float>(
          rule.ratio(tensor.moment, std::sqrt(sums.parameter), std::sqrt(sums.measured)));
    }
    return body.update(tensor);
  }
};

}  // namespace gallop::kernel
