#include "gallop/profile/eager_steps.h"

#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "gallop/profile/spans.h"

namespace gallop::profile {

namespace {

// "aten::add" of "aten::add.Tensor"
std::string_view without_overload(std::string_view op) { return op.substr(0, op.find('.')); }

// The phase in which a node runs in an eager step, where recomputation is part of backward.
std::string_view phase_in_step(const GraphNode& node) {
  if (node.parts.empty()) return {};
  const std::string& phase = node.parts.front().phase;
  return phase == "recomputation" ? "backward" : std::string_view(phase);
}

std::string_view phase_of(const Span& span) {
  const Span* phase =
      span.innermost([](const TraceEvent& event) { return event.kind == SpanKind::kPhase; });
  return phase == nullptr ? std::string_view() : phase->event->name;
}

// What a step does besides its computation.
bool is_aside(const TraceEvent& event) {
  switch (event.kind) {
    case SpanKind::kDataWait:
    case SpanKind::kData:
    case SpanKind::kCopy:
    case SpanKind::kCheckpoint:
    case SpanKind::kEvaluation: return true;
    default: return false;
  }
}

// The nodes of one step among its operators.
class Search {
 public:
  explicit Search(const std::vector<GraphNode>& nodes) : nodes_(nodes) {}

  // Spans in the order of their beginnings.
  void visit(const Span& span) {
    if (span.event->kind != SpanKind::kOperator || span.innermost(is_aside) != nullptr) return;
    if (end_ns_ > span.event->begin_ns) {
      called_.push_back(span.event);
      return;
    }
    if (is_complete()) return;
    const GraphNode& node = nodes_[found_.size()];
    if (span.event->name != without_overload(node.op) || phase_of(span) != phase_in_step(node)) {
      return;
    }
    found_.push_back(span.event);
    end_ns_ = span.event->end_ns;
  }

  bool is_complete() const { return found_.size() == nodes_.size(); }
  const GraphNode& missing() const { return nodes_[found_.size()]; }
  const std::vector<const TraceEvent*>& found() const { return found_; }
  // The operators that the found ones call.
  const std::vector<const TraceEvent*>& called() const { return called_; }

 private:
  const std::vector<GraphNode>& nodes_;
  std::vector<const TraceEvent*> found_, called_;
  int64_t end_ns_ = 0;  // End of the last step that was found.
};

std::string find_nodes_of(ThreadTrace& thread, const std::vector<GraphNode>& nodes) {
  std::map<const Span*, Search> steps;
  const std::vector<Span> spans = nested(thread.events);
  for (const Span& span : spans) {
    const Span* step =
        span.innermost([](const TraceEvent& event) { return event.kind == SpanKind::kStep; });
    if (step != nullptr) steps.try_emplace(step, nodes).first->second.visit(span);
  }
  std::set<const TraceEvent*> called;
  std::vector<std::pair<const TraceEvent*, size_t>> numbers;
  for (const auto& [step, search] : steps) {
    if (!search.is_complete()) {
      const GraphNode& node = search.missing();
      return fmt::format("step {} has no operator {}{} where it was recorded", step->event->number,
                         node.op,
                         node.parts.empty() || node.parts.front().layer.empty()
                             ? ""
                             : " of " + node.parts.front().layer);
    }
    called.insert(search.called().begin(), search.called().end());
    for (size_t i = 0; i < nodes.size(); ++i) numbers.emplace_back(search.found()[i], i);
  }
  TraceEvent* const first = thread.events.data();
  for (const auto& [event, number] : numbers) {
    first[event - first].number = static_cast<int64_t>(number);
  }
  std::vector<TraceEvent> kept;
  for (TraceEvent& event : thread.events) {
    if (!called.contains(&event)) kept.push_back(std::move(event));
  }
  thread.events = std::move(kept);
  return {};
}

}  // namespace

std::string find_nodes(Trace& trace, const std::vector<GraphNode>& nodes) {
  for (ThreadTrace& thread : trace.threads) {
    if (thread.main) return find_nodes_of(thread, nodes);
  }
  return "the trace has no training thread";
}

}  // namespace gallop::profile
