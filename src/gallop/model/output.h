#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::model {

/// What a model makes of its input: logits, or the last product of which they come, not yet taken:
/// a loss can take it in parts, so that all logits of a large vocabulary are never there.
struct Output {
  at::Tensor x;         ///< Logits [.., C]; with a weight, [.., K].
  at::Tensor weight{};  ///< [C, K], or undefined.

  /// x weight^T, or x.
  at::Tensor logits() const;
};

}  // namespace gallop::model
