#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

// Averages of weights along a training, as operators whose numbers that change from step to step
// are tensors: so they can be part of a recorded step.
namespace gallop::kernel {

/// By how much an average goes towards the present numbers, and after which updates. With n, how
/// often it has done so before:
///
///     kEqual  1 / (n + 1)
///     kDecay  1 at first, then 1 - number; with warm-up 1 - min(number, (1 + n) / (10 + n))
///     kShare  number; with a power 1 - (1 - number) * (updates / length)^power, no less than
///     number
struct AverageRule {
  enum class Kind : uint8_t { kEqual, kDecay, kShare };
  Kind kind = Kind::kEqual;
  double number = 0;
  bool warmup = false;
  int64_t start = 0;  ///< The first update that counts, from 1, and every so many after it;
  int64_t every = 1;  ///< 0 for the update before the first.
  double power = 0;   ///< Of kShare, which starts at 0.
  int64_t length = 1;
};

/// Tensors of one device, averages of one type, float or double, and values of the same or bf16, in
/// parallel lists: each pair of one layout, dense.
struct AverageStep {
  at::TensorList averages, values;
  at::Tensor counts{};     ///< fp64 [2]: updates so far, and how many of them were averaged.
  at::Tensor found_inf{};  ///< If defined and not 0, there was no update. fp32, no dimensions.
  AverageRule rule{};
};

/// Counts an update, and where it is due moves the averages towards the values:
/// average = average + share * (value - average), the values themselves for a share of 1. Where it
/// is not due, fp32 on the CPU is not touched.
void average(const AverageStep& step);

/// The same, and the values become the averages.
void average_both(const AverageStep& step);

}  // namespace gallop::kernel
