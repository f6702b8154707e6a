#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gallop/profile/profile.h"

namespace gallop::profile {

/// An event of a thread, within the events around it.
struct Span {
  const TraceEvent* event = nullptr;
  const Span* outer = nullptr;
  int64_t own_ns = 0;  ///< Without the time of events within it.

  /// The nearest of this span and those around it that fits; null if none does.
  template <typename Fits>
  const Span* innermost(const Fits& fits) const {
    const Span* span = this;
    while (span != nullptr && !fits(*span->event)) span = span->outer;
    return span;
  }
  /// The farthest of them.
  template <typename Fits>
  const Span* outermost(const Fits& fits) const {
    const Span* found = nullptr;
    for (const Span* span = this; span != nullptr; span = span->outer) {
      if (fits(*span->event)) found = span;
    }
    return found;
  }
};

/// The events of a thread by their beginning, each after those around it. They refer to each other
/// and to `events`.
std::vector<Span> nested(const std::vector<TraceEvent>& events);

/// Whether a span is around the nodes of a compiled graph, with the graph's number.
bool is_graph(const TraceEvent& event);

/// The graph's number and the index of the node that an operator's span is; nothing if it is none,
/// or the graph is unknown.
std::optional<std::pair<int64_t, size_t>> node_at(const Graphs& graphs, const Span& span);

}  // namespace gallop::profile
