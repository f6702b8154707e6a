#pragma once

#include <cstdint>
#include <span>

#include "gallop/kernel/number.h"
#include "gallop/kernel/update_table.h"

namespace gallop::kernel {

/// One parameter, its gradient and its states: fp32 arrays of `size` numbers on the CPU, and what a
/// rule's begin() gave for them.
struct UpdateTensor {
  float* parameter = nullptr;
  const float* gradient = nullptr;
  const Bf16* bf16_gradient = nullptr;  ///< If set, stands for `gradient`.
  float* states[kMostStates] = {};
  /// If set, states are kept in 8 bits: codes of StateMap in units of a scale for each kStateBlock
  /// numbers. They stand for `states`.
  uint8_t* codes[kMostStates] = {};
  float* scales[kMostStates] = {};
  Bf16* shadow = nullptr;  ///< If set, gets the new parameter, rounded.
  int64_t size = 0;

  float gradient_scale = 1;              ///< What the rule is given is the gradient times this.
  float factors[kMostFactors + 1] = {};  ///< Room for a trust ratio behind them.
  /// For a rule with a trust ratio.
  UpdateMoment<double> moment{};
};

/// Updates all tensors by all threads, in one pass, or two with a trust ratio; numbers below 2^-126
/// are 0 in it. Returns the Euclidean norm of all gradients before they are scaled, which costs
/// nothing here: its bits are those of norm(). It is finite if and only if every gradient is.
double update(const UpdateRule& rule, std::span<const UpdateTensor> tensors);

struct ConstArray {
  const float* data = nullptr;
  int64_t size = 0;
  const Bf16* bf16_data = nullptr;  ///< If set, stands for `data`.
};

/// Euclidean norm of all arrays together. The sum is taken over fixed chunks in a fixed order, so
/// that its bits do not depend on the number of threads.
double norm(std::span<const ConstArray> arrays);

}  // namespace gallop::kernel
