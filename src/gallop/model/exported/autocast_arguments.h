#pragma once

#include <optional>

#include <ATen/core/stack.h>

#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

/// How to adjust arguments of an operator that were right in fp32 to activations that autocast, or
/// weights stored in bf16, have made bf16 or fp16.
struct AutocastRule {
  enum class Kind {
    kClampConstant,  ///< The constant of masked_fill is clamped to the range of the format.
    kMatchFormats,  ///< What is written into a tensor (index_put, scatter, ...) takes the format of
                    ///< the tensor; out of place, both take the wider one, as in CUDA's autocast.
    kCastAll,  ///< All tensors of an LSTM take the format of autocast on CPUs whose oneDNN has no
               ///< LSTM in it: LibTorch selects oneDNN by the format before autocast.
  };
  Kind kind;
  size_t source;  ///< The place of the constant or of what is written; the tensor is argument 0.
  bool is_in_place;
};

/// Returns nothing for operators that need no adjustment.
std::optional<AutocastRule> find_autocast_rule(const Node& node);

void adjust_to_autocast(const AutocastRule& rule, torch::jit::Stack& stack);

}  // namespace gallop::model::exported
