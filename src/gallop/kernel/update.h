#pragma once

#include <cstdint>
#include <span>

#include "gallop/kernel/number.h"
#include "gallop/kernel/update_table.h"

namespace gallop::kernel {

/// Where the random numbers come from by which a bf16 parameter is rounded: base/philox.h's
/// function of the key and a counter, which is the number of a group of lanes and these three.
/// Words of counter i are 16 bits each for the numbers 128 * (i / 16) + i % 16 + 16 * k, k from 0
/// to 7: bits depend on the place in memory alone.
struct RoundingDraw {
  uint32_t key[2] = {}, counter[3] = {};
};

/// Numbers that share 16 counters.
inline constexpr int64_t kRoundingGroup = 8 * kLanes;

/// How a bf16 parameter takes its new value, which is computed in fp32.
enum class Rounding : uint8_t {
  kNearest,
  kStochastic,  ///< Up or down with the probabilities that make the mean the value itself.
  kKahan,       ///< To the nearest, and what is lost is added before the next update.
};

/// One parameter, its gradient and its states: fp32 arrays of `size` numbers on the CPU, and what a
/// rule's begin() gave for them.
struct UpdateTensor {
  float* parameter = nullptr;
  Bf16* bf16_parameter = nullptr;  ///< If set, stands for `parameter`.
  Rounding rounding = Rounding::kNearest;
  Bf16* compensation = nullptr;  ///< Of Kahan's: what was lost.
  RoundingDraw draw{};           ///< Of the stochastic one.
  int64_t first = 0;             ///< The first number's place in its tensor.
  const float* gradient = nullptr;
  const Bf16* bf16_gradient = nullptr;  ///< If set, stands for `gradient`.
  float* states[kMostStates] = {};
  /// If set, states are kept in 8 bits: codes of StateMap in units of a scale for each kStateBlock
  /// numbers. They stand for `states`.
  uint8_t* codes[kMostStates] = {};
  float* scales[kMostStates] = {};
  Bf16* bf16_copy = nullptr;  ///< If set, gets the new fp32 parameter, rounded.
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
