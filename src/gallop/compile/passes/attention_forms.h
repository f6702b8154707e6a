#pragma once

#include "gallop/compile/passes/matcher.h"

namespace gallop::compile::passes {

/// Attention with its gradient, in any formulation. Queries, keys, values, y and its gradient are
/// [B, H, T, D].
struct AttentionForm {
  ViewId query = kNone, key = kNone, value = kNone, y = kNone;
  bool causal = false;
  double scale = 1;
  int64_t first = kNone;           ///< The first node that reads query, key or value.
  int64_t place = kNone;           ///< Position of the kernel.
  int64_t gradient_place = kNone;  ///< kNone: there is no gradient.
  ViewId dy = kNone;
  std::vector<ViewId> gradients;  ///< Of query, key and value.
  std::vector<int64_t> removed;
};

/// Replaces the form by the kernel, if query, key and value are slices of one tensor [B, T, 3, H,
/// D], their gradients are concatenated in the same way, and the kernel supports it.
std::optional<Rewrite> rewrite_attention(Matcher& matcher, const AttentionForm& form);

}  // namespace gallop::compile::passes
