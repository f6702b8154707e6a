#pragma once

#include <cstdint>
#include <map>

#include "gallop/compile/passes/matcher.h"

namespace gallop::compile::passes {

/// Whether the node is LibTorch's fused attention on the CPU or its gradient.
bool is_flash_attention(const Matcher& matcher, int64_t node);

/// Buffers that become parts of other buffers, and the resulting views.
class MovedViews {
 public:
  explicit MovedViews(Matcher& matcher) : matcher_(matcher) {}

  /// Makes all views of the buffer of `from`, contiguous [N, O], views of `to`, [N, S], from this
  /// column on. False if one treats consecutive rows as contiguous.
  bool add_columns(ViewId from, ViewId to, int64_t column);

  /// Makes all views of the buffer of `from`, contiguous, views of `to`, with an offset of so many
  /// elements. False if one has another data type.
  bool add_shifted(ViewId from, ViewId to, int64_t elements);

  /// Whether all readers of this tensor's buffer support other strides, and then return results of
  /// the same layout.
  bool suit_readers_of(ViewId tensor) const;

  /// Replaces the views in the nodes of the graph and in inserted ones.
  void apply_to(Rewrite& change) const;

 private:
  ViewId now(ViewId id) const;
  void apply_to(Node& node) const;

  Matcher& matcher_;
  std::map<ViewId, ViewId> moved_;
};

}  // namespace gallop::compile::passes
