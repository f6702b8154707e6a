#pragma once

#include <cstdint>
#include <map>

#include "gallop/compile/passes/matcher.h"

namespace gallop::compile::passes {

/// Whether the node is LibTorch's fused attention on the CPU or its gradient.
bool is_flash_attention(const Matcher& matcher, int64_t node);

/// Buffers that become parts of other buffers: what their views are then.
class MovedViews {
 public:
  explicit MovedViews(Matcher& matcher) : matcher_(matcher) {}

  /// All views of the buffer of `from`, contiguous [N, O], become views of `to`, [N, S], from this
  /// column on. False where one goes from row to row as if there were nothing between them.
  bool add_columns(ViewId from, ViewId to, int64_t column);

  /// All views of the buffer of `from`, contiguous, lie so many elements after the start of `to`.
  /// False where one has another format.
  bool add_shifted(ViewId from, ViewId to, int64_t elements);

  /// Whether all who read the buffer of this tensor take its numbers with other strides, and give
  /// results of the same layout for them.
  bool suit_readers_of(ViewId tensor) const;

  /// Of the nodes of the graph and those that come.
  void apply_to(Rewrite& change) const;

 private:
  ViewId now(ViewId id) const;
  void apply_to(Node& node) const;

  Matcher& matcher_;
  std::map<ViewId, ViewId> moved_;
};

}  // namespace gallop::compile::passes
