#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gallop/compile/passes/matcher.h"

namespace gallop::compile::passes {

/// A view that a node reads.
struct Use {
  ViewId view = kNone;
  int64_t node = kNone;
};

/// A position at which one node can replace several: the values that they read are unchanged there,
/// and nothing reads their results before it.
struct Place {
  int64_t node = kNone;
  std::vector<int64_t> moved;  ///< Nodes that must be moved there too, in front of it.
};

/// The position before the first or the last of the nodes to replace, if valid.
std::optional<Place> place_for(const Matcher& matcher, int64_t first, int64_t last,
                               const std::vector<Use>& read, const std::vector<ViewId>& made);

/// Moves the nodes that must be in front of the position.
void move_to(const Matcher& matcher, const Place& place, Rewrite& change);

}  // namespace gallop::compile::passes
