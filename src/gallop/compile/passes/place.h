#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gallop/compile/passes/matcher.h"

namespace gallop::compile::passes {

/// What a node reads.
struct Use {
  ViewId view = kNone;
  int64_t node = kNone;
};

/// Where one node may stand for several: from there on everything that they read is what it is for
/// them, and before it nothing reads what they make.
struct Place {
  int64_t node = kNone;
  std::vector<int64_t> moved;  ///< Nodes that are to stand there too, in front of it.
};

/// In front of the first or the last of the nodes that it is to stand for.
std::optional<Place> place_for(const Matcher& matcher, int64_t first, int64_t last,
                               const std::vector<Use>& read, const std::vector<ViewId>& made);

/// Moves the nodes that are to stand at the place.
void move_to(const Matcher& matcher, const Place& place, Rewrite& change);

}  // namespace gallop::compile::passes
