#include "gallop/profile/spans.h"

#include <algorithm>
#include <tuple>

namespace gallop::profile {

std::vector<Span> nested(const std::vector<TraceEvent>& events) {
  std::vector<const TraceEvent*> sorted;
  for (const TraceEvent& event : events) sorted.push_back(&event);
  std::stable_sort(sorted.begin(), sorted.end(), [](const TraceEvent* a, const TraceEvent* b) {
    return std::tuple(a->begin_ns, b->end_ns) < std::tuple(b->begin_ns, a->end_ns);
  });
  std::vector<Span> spans;
  spans.reserve(sorted.size());
  std::vector<Span*> open;
  for (const TraceEvent* event : sorted) {
    while (!open.empty() && open.back()->event->end_ns <= event->begin_ns) open.pop_back();
    Span* outer = open.empty() ? nullptr : open.back();
    spans.push_back({.event = event, .outer = outer, .own_ns = event->ns()});
    if (outer != nullptr) outer->own_ns -= event->ns();
    open.push_back(&spans.back());
  }
  return spans;
}

bool is_graph(const TraceEvent& event) {
  return event.kind == SpanKind::kPhase && event.name == kGraphSpan;
}

std::optional<std::pair<int64_t, size_t>> node_at(const Graphs& graphs, const Span& span) {
  const Span* graph = span.innermost(is_graph);
  if (span.event->number < 0) return std::nullopt;
  const auto found = graphs.find(graph == nullptr ? kEagerGraph : graph->event->number);
  const auto index = static_cast<size_t>(span.event->number);
  if (found == graphs.end() || index >= found->second.size()) return std::nullopt;
  return std::pair(found->first, index);
}

}  // namespace gallop::profile
