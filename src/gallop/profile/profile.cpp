#include "gallop/profile/profile.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "gallop/base/error.h"
#include "gallop/profile/spans.h"

namespace gallop::profile {

namespace {

constexpr double kNanosecond = 1e-9;
constexpr double kCacheLineBytes = 64;
constexpr std::string_view kHost = "host", kCommunication = "communication", kOther = "other";

// The order in which phases are listed.
constexpr std::array<std::string_view, 13> kPhases = {"data wait",
                                                      "host-to-device copy",
                                                      "batch transforms",
                                                      "forward",
                                                      "loss",
                                                      "backward",
                                                      "recomputation",
                                                      "optimizer",
                                                      kOther,
                                                      kCommunication,
                                                      "checkpoint",
                                                      "evaluation",
                                                      "report"};

double seconds_of(int64_t ns) { return kNanosecond * static_cast<double>(ns); }

// What contains all that happens in it.
bool is_closed(const TraceEvent& event) {
  return event.kind == SpanKind::kDataWait || event.kind == SpanKind::kEvaluation ||
         event.kind == SpanKind::kCheckpoint;
}

bool is_compilation(const TraceEvent& event) { return event.kind == SpanKind::kCompilation; }

// Adds the times of nodes to layers and totals.
class NodeTimes {
 public:
  NodeTimes(Profile& profile, const MachinePeaks& peaks) : profile_(profile), peaks_(peaks) {}

  // `calls` and `seconds` in a step.
  void add(const GraphNode& node, double calls, double seconds) {
    const auto bound = peaks_.bound_of(node.needed_flops, node.format, node.bytes);
    profile_.flops += calls * node.flops;
    profile_.limit += calls * bound.seconds;
    if (profile_.seconds > 0) {
      profile_.flops_utilization +=
          calls * peaks_.bound_of(node.flops, node.format, 0).seconds / profile_.seconds;
    }
    if (node.communicates) return;  // The layer's work does not depend on how long that takes.
    for (const NodePart& part : node.parts) {
      LayerTime& layer = layer_of(part.layer);
      phase_of(layer, part.phase) += part.share * seconds;
      layer.flops += part.share * calls * node.flops;
      layer.bytes += part.share * calls * node.bytes;
      layer.limit += part.share * calls * bound.seconds;
      if (bound.by_flops) layer.limit_by_flops += part.share * calls * bound.seconds;
    }
  }

 private:
  LayerTime& layer_of(const std::string& name) {
    const auto [found, is_new] = index_of_.try_emplace(name, profile_.layers.size());
    if (is_new) profile_.layers.push_back({.name = name});
    return profile_.layers[found->second];
  }

  static double& phase_of(LayerTime& layer, const std::string& phase) {
    if (phase == "forward" || phase == "loss") return layer.forward;
    return phase == "backward" || phase == "recomputation" ? layer.backward : layer.other;
  }

  Profile& profile_;
  const MachinePeaks& peaks_;
  std::map<std::string, size_t> index_of_;
};

class Evaluation {
 public:
  Evaluation(const Trace& trace, const Graphs& graphs, const MachinePeaks& peaks)
      : graphs_(graphs), peaks_(peaks) {
    for (const ThreadTrace& thread : trace.threads) {
      if (thread.main) add_main(thread);
    }
    if (step_seconds_.empty()) {
      throw UsageError("the trace has no complete step; profile more steps");
    }
    for (const ThreadTrace& thread : trace.threads) add_loader(trace, thread);
  }

  Profile take() {
    profile_.steps = static_cast<int64_t>(step_seconds_.size());
    const auto steps = static_cast<double>(profile_.steps);
    for (const double seconds : step_seconds_) profile_.seconds += seconds / steps;
    const auto slowest = std::max_element(step_seconds_.begin(), step_seconds_.end());
    profile_.slowest = *slowest;
    profile_.slowest_step = profile_.first_step + (slowest - step_seconds_.begin());
    std::sort(step_seconds_.begin(), step_seconds_.end());
    profile_.median = step_seconds_[step_seconds_.size() / 2];
    profile_.p95 = step_seconds_[(step_seconds_.size() - 1) * 95 / 100];
    take_phases(steps);
    take_layers(steps);
    take_operators(steps);
    take_loader(steps);
    return std::move(profile_);
  }

 private:
  void add_main(const ThreadTrace& thread) {
    const std::vector<Span> spans = nested(thread.events);
    for (const Span& span : spans) {
      const TraceEvent& event = *span.event;
      if (event.kind == SpanKind::kStep) {
        if (step_seconds_.empty()) profile_.first_step = event.number;
        step_seconds_.push_back(seconds_of(event.ns()));
      }
      const Span* step =
          span.innermost([](const TraceEvent& outer) { return outer.kind == SpanKind::kStep; });
      if (step == nullptr) continue;
      const bool is_outermost =
          is_compilation(event) &&
          (span.outer == nullptr || span.outer->innermost(is_compilation) == nullptr);
      if (is_outermost) leave_out(span);
      add(span);
    }
  }

  // The time in which a step is recorded and compiled, once in a training, does not count.
  void leave_out(const Span& compilation) {
    const double seconds = seconds_of(compilation.event->ns());
    profile_.compilation += seconds;
    if (!step_seconds_.empty()) step_seconds_.back() -= seconds;
  }

  void add(const Span& span) {
    const TraceEvent& event = *span.event;
    const double seconds = seconds_of(span.own_ns);
    if (span.innermost(is_compilation) != nullptr) return;
    if (const Span* closed = span.outermost(is_closed)) {
      phases_[name_of(closed->event->kind)] += seconds;
      return;
    }
    switch (event.kind) {
      case SpanKind::kOperator: return add_operator(span, seconds);
      case SpanKind::kCopy:
      case SpanKind::kData: phases_[event.name] += seconds; return;
      case SpanKind::kCommunication: phases_[std::string(kCommunication)] += seconds; return;
      default: break;
    }
    phases_[phase_of(span)] += seconds;
  }

  // The listed phase that the span is in; else the host's own work.
  static std::string phase_of(const Span& span) {
    const Span* phase = span.innermost([](const TraceEvent& event) {
      return event.kind == SpanKind::kPhase &&
             std::find(kPhases.begin(), kPhases.end(), event.name) != kPhases.end();
    });
    return phase == nullptr ? std::string(kHost) : phase->event->name;
  }

  void add_operator(const Span& span, double seconds) {
    const auto place = node_at(graphs_, span);
    if (!place) {
      phases_[phase_of(span)] += seconds;
      OperatorTime& all = eager_[span.event->name];
      all.calls += 1;
      all.seconds += seconds;
      return;
    }
    const GraphNode& node = graphs_.at(place->first)[place->second];
    OperatorTime& all = nodes_[*place];
    all.calls += 1;
    all.seconds += seconds;
    if (node.communicates) {
      phases_[std::string(kCommunication)] += seconds;
      return;
    }
    double known = 0;
    for (const NodePart& part : node.parts) {
      phases_[part.phase.empty() ? std::string(kOther) : part.phase] += part.share * seconds;
      known += part.share;
    }
    if (known < 1) phases_[std::string(kOther)] += (1 - known) * seconds;
  }

  void add_loader(const Trace& trace, const ThreadTrace& thread) {
    if (thread.name != "loader") return;
    profile_.loader.threads += 1;
    loader_window_ += seconds_of(trace.end_ns - trace.begin_ns);
    for (const Span& span : nested(thread.events)) {
      if (span.event->kind != SpanKind::kData) continue;
      loader_parts_[span.event->name] += seconds_of(span.own_ns);
      if (span.outer == nullptr) loader_busy_ += seconds_of(span.event->ns());
    }
  }

  void take_phases(double steps) {
    double rest = profile_.seconds;
    const auto take = [&](const std::string& name) {
      const auto found = phases_.find(name);
      if (found == phases_.end()) return;
      profile_.phases.push_back({name, found->second / steps});
      rest -= profile_.phases.back().seconds;
      phases_.erase(found);
    };
    for (const std::string_view name : kPhases) take(std::string(name));
    phases_.erase(std::string(kHost));
    while (!phases_.empty()) take(phases_.begin()->first);
    profile_.phases.push_back({std::string(kHost), std::max(0.0, rest)});
  }

  void take_layers(double steps) {
    NodeTimes times(profile_, peaks_);
    for (const auto& [key, time] : nodes_) {
      const auto& nodes = graphs_.at(key.first);
      times.add(nodes[key.second], time.calls / steps, time.seconds / steps);
      auto& of_graph = profile_.node_seconds[key.first];
      of_graph.resize(nodes.size());
      of_graph[key.second] = time.seconds / time.calls;
    }
  }

  void take_operators(double steps) {
    for (auto& [name, time] : eager_) {
      profile_.operators.push_back({.op = name,
                                    .call = name,
                                    .layer = {},
                                    .format = {},
                                    .calls = time.calls / steps,
                                    .seconds = time.seconds / steps});
    }
    for (const auto& [key, time] : nodes_) {
      const GraphNode& node = graphs_.at(key.first)[key.second];
      const double calls = time.calls / steps;
      profile_.operators.push_back(
          {.op = node.op,
           .call = node.call,
           .layer = node.parts.empty() ? std::string() : node.parts.front().layer,
           .format = node.format,
           .calls = calls,
           .seconds = time.seconds / steps,
           .flops = calls * node.flops,
           .bytes = calls * node.bytes,
           .limit = calls * peaks_.bound_of(node.needed_flops, node.format, node.bytes).seconds});
    }
    std::stable_sort(profile_.operators.begin(), profile_.operators.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  }

  void take_loader(double steps) {
    if (loader_window_ > 0) profile_.loader.busy = loader_busy_ / loader_window_;
    for (const auto& [name, seconds] : loader_parts_) {
      profile_.loader.parts.push_back({name, seconds / steps});
    }
    std::stable_sort(profile_.loader.parts.begin(), profile_.loader.parts.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  }

  const Graphs& graphs_;
  const MachinePeaks& peaks_;
  Profile profile_;
  std::vector<double> step_seconds_;
  std::map<std::string, double> phases_, loader_parts_;
  std::map<std::pair<int64_t, size_t>, OperatorTime> nodes_;  // By graph and index.
  std::map<std::string, OperatorTime> eager_;
  double loader_busy_ = 0, loader_window_ = 0;
};

}  // namespace

MachinePeaks::Bound MachinePeaks::bound_of(double flops, const std::string& format,
                                           double bytes) const {
  double by_flops = 0, by_bytes = 0;
  const auto rate = flops_per_second.find(format);
  if (flops > 0 && rate != flops_per_second.end()) by_flops = flops / rate->second;
  if (!bytes_per_second.empty()) {
    // The rate of a smaller size, which is not lower.
    auto level = bytes_per_second.begin();
    while (std::next(level) != bytes_per_second.end() && std::next(level)->first <= bytes) ++level;
    by_bytes = bytes / level->second;
  }
  return {.seconds = std::max(by_flops, by_bytes), .by_flops = by_flops >= by_bytes && flops > 0};
}

Profile profile_of(const Trace& trace, const Graphs& graphs, const MachinePeaks& peaks) {
  return Evaluation(trace, graphs, peaks).take();
}

void add_counts(Profile& profile, const ProcessCounts& counts) {
  profile.counts = counts;
  for (auto& [name, count] : profile.counts.values) count /= static_cast<double>(profile.steps);
}

CounterRates rates_of(const Profile& profile) {
  const auto ratio = [&](const char* name, double of) -> std::optional<double> {
    const auto found = profile.counts.values.find(name);
    if (found == profile.counts.values.end() || of <= 0) return std::nullopt;
    return found->second / of;
  };
  const double cycles = ratio("cycles", 1).value_or(0);
  return {.instructions_per_cycle = ratio("instructions", cycles),
          .stalled_frontend = ratio("stalled_cycles_frontend", cycles),
          .stalled_backend = ratio("stalled_cycles_backend", cycles),
          .llc_bytes_per_second = ratio("llc_misses", profile.seconds / kCacheLineBytes)};
}

}  // namespace gallop::profile
