#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

// Averages of weights during training, as operators whose step-dependent scalars are tensors, so
// that they can be part of a recorded step.
namespace gallop::kernel {

/// The factor by which an average moves towards the current values, and the updates after which it
/// does. With n, the number of previous averages:
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
  int64_t start = 0;  ///< Updates start, start + every, ... are averaged, counted from 1;
  int64_t every = 1;  ///< if `start` is 0, the first is update `every`.
  double power = 0;   ///< Of kShare; 0: none.
  int64_t length = 1;
};

/// Tensors of one device in parallel lists: averages of one type, fp32 or fp64, and values of that
/// type or bf16. Both tensors of a pair are dense and have the same layout.
struct AverageStep {
  at::TensorList averages, values;
  at::Tensor counts{};     ///< fp64 [2]: the number of updates, and of those averaged.
  at::Tensor found_inf{};  ///< If defined and not 0, there was no update. fp32, 0-dim.
  AverageRule rule{};
};

/// Counts an update and, if it is due, moves the averages towards the values:
/// average = average + share * (value - average), exactly the values for a share of 1. If it is not
/// due, fp32 tensors on the CPU are not accessed.
void average(const AverageStep& step);

/// As average(), and copies the averages to the values.
void average_both(const AverageStep& step);

}  // namespace gallop::kernel
