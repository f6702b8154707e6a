#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include <ATen/core/stack.h>

#include "gallop/kernel/attention_mask.h"

namespace gallop::model::exported {

/// The mask of a call of scaled_dot_product_attention that depends on nothing but sizes, as
/// transformers make it for causal models. It is read once for given sizes.
class FixedMask {
 public:
  /// Replaces a causal mask in the call's arguments by is_causal, and removes one that hides
  /// nothing: LibTorch's attention without a mask is faster on a GPU, and much faster where it must
  /// be deterministic.
  void simplify(torch::jit::Stack& stack);

 private:
  std::mutex mutex_;
  std::map<std::vector<int64_t>, std::optional<kernel::MaskedKeys>> known_;  // By sizes.
};

}  // namespace gallop::model::exported
