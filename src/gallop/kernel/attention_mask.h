#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// What a mask of attention hides.
enum class MaskedKeys {
  kNone,
  kLater,  ///< The keys behind each query, of which there are as many as queries: causal attention.
};

/// Reads a mask on the host: of bools, true for visible keys, or of numbers that are added to the
/// scores. Nothing for other masks. The last two of its dimensions are queries and keys, or 1.
std::optional<MaskedKeys> masked_keys(const at::Tensor& mask, int64_t queries, int64_t keys);

}  // namespace gallop::kernel
