#include "gallop/compile/passes/place.h"

#include <algorithm>

namespace gallop::compile::passes {

namespace {

// The node that must move to `place` so that the tensor is available there, such as the cast of a
// weight; nothing if that is not possible.
std::optional<int64_t> movable_maker(const Matcher& matcher, ViewId tensor, int64_t place) {
  const int64_t maker = matcher.source_of(tensor);
  if (maker == kNone || maker < place || !is_pure(matcher.node(maker))) return std::nullopt;
  for (const Operand& operand : matcher.node(maker).arguments) {
    for (const ViewId view : operand.views) {
      if (!matcher.can_be_read_at(view, maker, place)) return std::nullopt;
    }
  }
  return maker;
}

std::optional<Place> place_at(const Matcher& matcher, int64_t node, const std::vector<Use>& read,
                              const std::vector<ViewId>& made) {
  Place place{.node = node, .moved = {}};
  for (const ViewId view : made) {
    const auto readers = matcher.readers_of(view);
    if (std::any_of(readers.begin(), readers.end(), [&](int64_t r) { return r < node; })) {
      return std::nullopt;
    }
  }
  for (const Use& use : read) {
    if (matcher.can_be_read_at(use.view, use.node, node)) continue;
    const auto maker = movable_maker(matcher, use.view, node);
    if (!maker) return std::nullopt;
    if (std::find(place.moved.begin(), place.moved.end(), *maker) == place.moved.end()) {
      place.moved.push_back(*maker);
    }
  }
  return place;
}

}  // namespace

std::optional<Place> place_for(const Matcher& matcher, int64_t first, int64_t last,
                               const std::vector<Use>& read, const std::vector<ViewId>& made) {
  auto place = place_at(matcher, first, read, made);
  return place ? place : place_at(matcher, last, read, made);
}

void move_to(const Matcher& matcher, const Place& place, Rewrite& change) {
  for (const int64_t node : place.moved) {
    change.removed.push_back(node);
    change.added.emplace_back(place.node, matcher.node(node));
  }
}

}  // namespace gallop::compile::passes
