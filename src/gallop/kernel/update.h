#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gallop/kernel/number.h"
#include "gallop/kernel/update_table.h"

namespace gallop::kernel {

/// The source of the random numbers for rounding a bf16 parameter: Philox (base/philox.h)
/// with the key and a counter, which consists of the index of a group of lanes and these three.
/// The words of counter i are 16 bits each for elements 128 * (i / 16) + i % 16 + 16 * k, k from 0
/// to 7: bits depend on the position in memory alone.
struct RoundingDraw {
  uint32_t key[2] = {}, counter[3] = {};
};

/// Elements that share 16 counters.
inline constexpr int64_t kRoundingGroup = 8 * kLanes;

/// How a bf16 parameter is updated from its new value, which is computed in fp32.
enum class Rounding : uint8_t {
  kNearest,
  kStochastic,  ///< Up or down with probabilities such that the expected value is exact.
  kKahan,       ///< To nearest; the error is added before the next update.
};

/// One parameter, its gradient and its states: fp32 arrays of `size` elements on the CPU, and the
/// results of the rule's begin() for them.
struct UpdateTensor {
  float* parameter = nullptr;
  Bf16* bf16_parameter = nullptr;  ///< If set, replaces `parameter`.
  Rounding rounding = Rounding::kNearest;
  Bf16* compensation = nullptr;  ///< For kKahan: the rounding error.
  RoundingDraw draw{};           ///< For kStochastic.
  int64_t first = 0;             ///< Index of the first element in its tensor.
  const float* gradient = nullptr;
  const Bf16* bf16_gradient = nullptr;  ///< If set, replaces `gradient`.
  float* states[kMostStates] = {};
  /// If set, replaces `states` by 8-bit ones: codes of StateMap with a scale for each kStateBlock
  /// elements.
  uint8_t* codes[kMostStates] = {};
  float* scales[kMostStates] = {};
  Bf16* bf16_copy = nullptr;  ///< If set, receives the new fp32 parameter, rounded.
  int64_t size = 0;

  float gradient_scale = 1;              ///< The rule receives the gradient times this.
  float factors[kMostFactors + 1] = {};  ///< A trust ratio follows the factors.
  /// For a rule with a trust ratio.
  UpdateMoment<double> moment{};
};

/// Updates all tensors on all threads, in one pass, or two with a trust ratio; numbers below 2^-126
/// are treated as 0. Returns the Euclidean norm of all gradients before they are scaled, at no
/// extra cost: its bits are those of norm(). It is finite if and only if every gradient is.
double update(const UpdateRule& rule, std::span<const UpdateTensor> tensors);

/// Elements of a tensor whose squares norm() adds up before it adds the sums of all chunks.
inline constexpr int64_t kNormChunk = 4096;

/// The number of chunks of a tensor with this many elements.
constexpr int64_t norm_chunks(int64_t elements) { return (elements + kNormChunk - 1) / kNormChunk; }

struct ConstArray {
  const float* data = nullptr;
  int64_t size = 0;
  const Bf16* bf16_data = nullptr;  ///< If set, replaces `data`.
};

/// Euclidean norm of all arrays together. Sums over fixed chunks in a fixed order, so
/// that its bits do not depend on the number of threads.
double norm(std::span<const ConstArray> arrays);

/// The sums of squares of all chunks of all arrays, in order: norm() is the root of their sum.
std::vector<double> sums_of_squares(std::span<const ConstArray> arrays);
/// The root of the sum of such numbers, added in order.
double norm_of_sums(std::span<const double> sums);

}  // namespace gallop::kernel
