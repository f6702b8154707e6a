#include "gallop/profile/chrome_trace.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/profile/spans.h"

namespace gallop::profile {

namespace {

using Json = nlohmann::ordered_json;

double microseconds(int64_t ns) { return static_cast<double>(ns) / 1000; }

std::string name_in_trace(const TraceEvent& event) {
  if (event.kind == SpanKind::kStep) return fmt::format("ProfilerStep#{}", event.number);
  if (event.kind == SpanKind::kDataWait) return "enumerate(DataLoader)#Loader.__next__";
  return event.name;
}

const char* category_of(const TraceEvent& event) {
  switch (event.kind) {
    case SpanKind::kOperator: return "cpu_op";
    case SpanKind::kStep:
    case SpanKind::kPhase:
    case SpanKind::kLayer:
    case SpanKind::kDataWait: return "user_annotation";
    default: return name_of(event.kind);
  }
}

// The arguments of a node of a compiled step.
Json arguments_of(const GraphNode& node) {
  Json arguments = {{"call", node.call}};
  if (!node.parts.empty()) {
    arguments["phase"] = node.parts.front().phase;
    arguments["layer"] = node.parts.front().layer;
  }
  if (node.flops > 0) arguments["flops"] = node.flops;
  arguments["bytes"] = node.bytes;
  return arguments;
}

Json metadata(const char* name, int64_t process, int64_t thread, Json arguments) {
  return {{"ph", "M"},
          {"name", name},
          {"pid", process},
          {"tid", thread},
          {"args", std::move(arguments)}};
}

// The memory along the nodes of compiled steps.
class MemoryCounter {
 public:
  MemoryCounter(const StepMemory& held, int64_t process, int64_t begin_ns)
      : held_(held), process_(process), begin_ns_(begin_ns) {}

  // The spans of a thread.
  void add(const std::vector<Span>& spans, const Graphs& graphs, Json& events) {
    const Span* graph = nullptr;
    for (const Span& span : spans) {
      if (span.event->kind != SpanKind::kOperator) continue;
      const auto place = node_at(graphs, span);
      if (!place) continue;
      const Span* of_node = span.innermost(is_graph);
      if (of_node == nullptr) continue;  // It belongs to an eager step.
      if (graph != nullptr && of_node != graph) show({}, graph->event->end_ns, events);
      graph = of_node;
      show(graphs.at(place->first)[place->second].memory, span.event->begin_ns, events);
    }
    if (graph != nullptr) show({}, graph->event->end_ns, events);
  }

 private:
  void show(const MemoryUse& use, int64_t ns, Json& events) {
    if (shown_ == use) return;
    shown_ = use;
    events.push_back({{"ph", "C"},
                      {"name", "memory"},
                      {"pid", process_},
                      {"ts", microseconds(ns - begin_ns_)},
                      {"args",
                       {{"parameters", held_.parameters + held_.buffers},
                        {"optimizer", held_.optimizer},
                        {"activations", use.activations},
                        {"gradients", use.gradients},
                        {"temporaries", use.temporaries}}}});
  }

  const StepMemory& held_;
  int64_t process_, begin_ns_;
  std::optional<MemoryUse> shown_;
};

}  // namespace

Trace last_steps(Trace trace, size_t most_spans) {
  const auto count = [&](int64_t begin_ns) {
    size_t spans = 0;
    for (const ThreadTrace& thread : trace.threads) {
      for (const TraceEvent& event : thread.events) spans += event.begin_ns >= begin_ns ? 1 : 0;
    }
    return spans;
  };
  if (count(0) <= most_spans) return trace;
  std::vector<int64_t> begins;
  for (const ThreadTrace& thread : trace.threads) {
    for (const TraceEvent& event : thread.events) {
      if (event.kind == SpanKind::kStep) begins.push_back(event.begin_ns);
    }
  }
  if (begins.empty()) return trace;
  std::sort(begins.begin(), begins.end());
  const auto first = std::find_if(begins.begin(), begins.end() - 1,
                                  [&](int64_t begin_ns) { return count(begin_ns) <= most_spans; });
  for (ThreadTrace& thread : trace.threads) {
    std::erase_if(thread.events, [&](const TraceEvent& event) { return event.begin_ns < *first; });
  }
  return trace;
}

std::string chrome_trace(const Trace& trace, const Graphs& graphs, const StepMemory& memory,
                         const TraceOrigin& origin) {
  const int64_t process = getpid();
  Json events = Json::array();
  events.push_back(metadata("process_name", process, 0, {{"name", "gallop"}}));
  events.push_back(
      metadata("process_labels", process, 0, {{"labels", fmt::format("rank {}", origin.rank)}}));
  MemoryCounter counter(memory, process, trace.begin_ns);
  for (const ThreadTrace& thread : trace.threads) {
    events.push_back(metadata(
        "thread_name", process, thread.id,
        {{"name", fmt::format("thread {} ({})", thread.id, thread.main ? "main" : thread.name)}}));
    const std::vector<Span> spans = nested(thread.events);
    counter.add(spans, graphs, events);
    for (const Span& span : spans) {
      const TraceEvent& event = *span.event;
      Json one = {{"ph", "X"},
                  {"cat", category_of(event)},
                  {"name", name_in_trace(event)},
                  {"pid", process},
                  {"tid", thread.id},
                  {"ts", microseconds(event.begin_ns - trace.begin_ns)},
                  {"dur", microseconds(event.ns())}};
      const auto place = event.kind == SpanKind::kOperator ? node_at(graphs, span) : std::nullopt;
      if (place) one["args"] = arguments_of(graphs.at(place->first)[place->second]);
      events.push_back(std::move(one));
    }
  }
  Json all = {{"schemaVersion", 1},
              {"deviceProperties", Json::array()},
              {"displayTimeUnit", "ms"},
              {"baseTimeNanoseconds", 0},
              {"traceName", "gallop"}};
  if (!origin.host.empty()) all["host"] = origin.host;
  all["distributedInfo"] = {
      {"backend", origin.backend}, {"rank", origin.rank}, {"world_size", origin.processes}};
  all["traceEvents"] = std::move(events);
  std::string text = all.dump(-1, ' ', false, Json::error_handler_t::replace);
  // HolisticTraceAnalysis finds the rank with a regular expression that requires a space.
  constexpr std::string_view kRank = "\"rank\":";
  text.insert(text.find(kRank) + kRank.size(), " ");
  return text;
}

}  // namespace gallop::profile
