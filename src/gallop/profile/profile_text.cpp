#include "gallop/profile/profile_text.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/text.h"
#include "gallop/profile/rank_times.h"

namespace gallop::profile {

namespace {

// Below this share of a step, phases are not listed.
constexpr double kLeastShare = 0.0005;

double ms(double seconds) { return 1e3 * seconds; }

std::string cut(std::string line, size_t columns) {
  if (columns > 3 && line.size() > columns) line = line.substr(0, columns - 3) + "...";
  return line + "\n";
}

// "4.31 GFLOP"
std::string flops_text(double flops) {
  if (flops >= 1e12) return fmt::format("{:.2f} TFLOP", flops / 1e12);
  if (flops >= 1e9) return fmt::format("{:.2f} GFLOP", flops / 1e9);
  return fmt::format("{:.2f} MFLOP", flops / 1e6);
}

std::string step_text(const Profile& profile, const TextConfig& config) {
  std::string text = fmt::format(
      "step       {:.2f} ms (median {:.2f}, p95 {:.2f}, slowest {:.2f} in step {}), {} {}/s\n",
      ms(profile.seconds), ms(profile.median), ms(profile.p95), ms(profile.slowest),
      profile.slowest_step,
      format_count(
          static_cast<int64_t>(static_cast<double>(profile.samples) / profile.seconds + 0.5)),
      config.items);
  if (profile.compilation > 0) {
    text += fmt::format("compiling  {:.2f} s in these steps, which do not count\n",
                        profile.compilation);
  }
  if (profile.limit > 0) {
    text += fmt::format("limit      {:.2f} ms at this machine's peaks, {} of the step\n",
                        ms(profile.limit), percent(profile.share_of(profile.limit)));
  }
  if (profile.flops > 0) {
    text += fmt::format(
        "FLOPs      {} in GEMMs, convolutions and attention: {}/s, utilization (MFU) {}\n",
        flops_text(profile.flops), flops_text(profile.flops / profile.seconds),
        percent(profile.flops_utilization));
  }
  return text;
}

std::string phases_text(const Profile& profile) {
  std::string text = fmt::format("{:<20}  {:>9}  {:>5}\n", "phase", "ms", "%");
  for (const PhaseTime& phase : profile.phases) {
    if (profile.share_of(phase.seconds) < kLeastShare) continue;
    text += fmt::format("{:<20}  {:>9.3f}  {:>5.1f}\n", phase.name, ms(phase.seconds),
                        100 * profile.share_of(phase.seconds));
  }
  return text;
}

std::string limit_text(double limit, double seconds) {
  return limit > 0 && seconds > 0 ? fmt::format("{:.0f} %", 100 * limit / seconds) : "";
}

std::string bound_text(const LayerTime& layer) {
  if (layer.limit <= 0) return "";
  return layer.limit_by_flops > layer.limit / 2 ? "FLOPs" : "memory";
}

std::string layers_text(const Profile& profile, const TextConfig& config) {
  std::vector<const LayerTime*> sorted;
  for (const LayerTime& layer : profile.layers) sorted.push_back(&layer);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->seconds() > b->seconds(); });
  const size_t shown = std::min(config.layers, sorted.size());
  size_t width = 24;
  for (size_t i = 0; i < shown; ++i) width = std::max(width, sorted[i]->name.size());
  std::string text = fmt::format("{:<{}}  {:>9}  {:>9}  {:>5}  {:>6}  {}\n", "layer", width,
                                 "forward", "backward", "%", "limit", "bound by");
  LayerTime rest;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const LayerTime& layer = *sorted[i];
    if (i >= shown) {
      rest.forward += layer.forward;
      rest.backward += layer.backward;
      rest.other += layer.other;
      continue;
    }
    text +=
        cut(fmt::format("{:<{}}  {:>9.3f}  {:>9.3f}  {:>5.1f}  {:>6}  {}",
                        layer.name.empty() ? "(no layer)" : layer.name, width, ms(layer.forward),
                        ms(layer.backward), 100 * profile.share_of(layer.seconds()),
                        limit_text(layer.limit, layer.seconds()), bound_text(layer)),
            config.columns);
  }
  if (sorted.size() > shown) {
    text += fmt::format("{:<{}}  {:>9.3f}  {:>9.3f}  {:>5.1f}\n",
                        fmt::format("{} more", sorted.size() - shown), width, ms(rest.forward),
                        ms(rest.backward), 100 * profile.share_of(rest.seconds()));
  }
  return text;
}

std::string operators_text(const Profile& profile, const TextConfig& config) {
  std::string text =
      fmt::format("{:>9}  {:>5}  {:>6}  {}\n", "ms", "%", "limit", "slowest operators");
  const size_t shown = std::min(config.operators, profile.operators.size());
  for (size_t i = 0; i < shown; ++i) {
    const OperatorTime& one = profile.operators[i];
    std::string what = one.call;
    if (one.calls > 1.5) what = fmt::format("{} ({:.0f} calls)", what, one.calls);
    if (!one.layer.empty()) what = fmt::format("{}: {}", one.layer, what);
    text += cut(
        fmt::format("{:>9.3f}  {:>5.1f}  {:>6}  {}", ms(one.seconds),
                    100 * profile.share_of(one.seconds), limit_text(one.limit, one.seconds), what),
        config.columns);
  }
  return text;
}

std::string memory_text(const StepMemory& memory, const TextConfig& config) {
  if (memory.of_process == 0) return {};
  std::string text =
      fmt::format("memory     {} peak of the process; parameters {}, optimizer state {}\n",
                  format_bytes(memory.of_process), format_bytes(memory.parameters + memory.buffers),
                  format_bytes(memory.optimizer));
  if (memory.peak.total() == 0) return text;
  const std::string where = memory.peak_layer.empty()
                                ? memory.peak_phase
                                : fmt::format("{} of {}", memory.peak_phase, memory.peak_layer);
  text +=
      cut(fmt::format("           a step holds most in {}: activations {}, gradients {}, "
                      "temporaries {}",
                      where, format_bytes(memory.peak.activations),
                      format_bytes(memory.peak.gradients), format_bytes(memory.peak.temporaries)),
          config.columns);
  std::string largest;
  for (size_t i = 0; i < std::min<size_t>(3, memory.layers.size()); ++i) {
    const LayerMemory& layer = memory.layers[i];
    largest +=
        fmt::format("{}{} {}", i == 0 ? "" : ", ", layer.layer.empty() ? "(no layer)" : layer.layer,
                    format_bytes(layer.use.total()));
  }
  return text + cut("           of these " + largest, config.columns);
}

std::string ranks_text(const Profile& profile) {
  if (profile.ranks.empty()) return {};
  std::string text =
      fmt::format("{:>4}  {:<16}  {:>9}  {:>9}  {:>9}  {:>9}  {:>10}  {}\n", "rank", "host", "step",
                  "compute", "data wait", "exposed", "overlapped", "last into collectives");
  for (const RankTime& one : profile.ranks) {
    text += fmt::format("{:>4}  {:<16}  {:>9.3f}  {:>9.3f}  {:>9.3f}  {:>9.3f}  {:>10.3f}  {}\n",
                        one.rank, one.host, ms(one.seconds), ms(one.compute), ms(one.data_wait),
                        ms(one.exposed_communication), ms(one.overlapped_communication),
                        percent(one.last_into_collectives));
  }
  return text +
         fmt::format("communication is exposed or overlapped by the step; skew of compute {}\n",
                     percent(rank_skew(profile.ranks)));
}

std::string loader_text(const Profile& profile) {
  if (profile.loader.threads == 0) return {};
  std::string text =
      fmt::format("loader     {} thread{}, {} busy", profile.loader.threads,
                  profile.loader.threads == 1 ? "" : "s", percent(profile.loader.busy));
  for (size_t i = 0; i < std::min<size_t>(4, profile.loader.parts.size()); ++i) {
    const PhaseTime& part = profile.loader.parts[i];
    text += fmt::format("{}{} {:.2f} ms", i == 0 ? "; a step takes " : ", ", part.name,
                        ms(part.seconds));
  }
  return text + "\n";
}

// "1.25 M", "320"
std::string short_count(double count) {
  for (const auto& [size, prefix] : {std::pair(1e9, "G"), std::pair(1e6, "M")}) {
    if (count >= size) return fmt::format("{:.2f} {}", count / size, prefix);
  }
  return count < 100 ? fmt::format("{:.3g}", count)
                     : format_count(static_cast<int64_t>(count + 0.5));
}

std::string hardware_text(const Profile& profile) {
  const auto& values = profile.counts.values;
  const CounterRates rates = rates_of(profile);
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const char* text) {
    const auto found = values.find(name);
    if (found == values.end()) return;
    parts.push_back(fmt::format("{} {}", short_count(found->second), text));
  };
  if (rates.instructions_per_cycle) {
    parts.push_back(fmt::format("{:.2f} instructions per cycle", *rates.instructions_per_cycle));
  }
  add("cycles", "cycles");
  if (rates.llc_bytes_per_second) {
    add("llc_misses", "LLC misses");
    parts.back() += fmt::format(" ({:.2f} GB/s)", *rates.llc_bytes_per_second / 1e9);
  } else {
    add("cache_misses", "cache misses");
  }
  if (rates.stalled_frontend) {
    parts.push_back(fmt::format("frontend stalled {}", percent(*rates.stalled_frontend)));
  }
  if (rates.stalled_backend) {
    parts.push_back(fmt::format("backend stalled {}", percent(*rates.stalled_backend)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string counters_text(const Profile& profile, const TextConfig& config) {
  const auto& values = profile.counts.values;
  const auto of = [&](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? "?" : short_count(found->second);
  };
  if (values.empty()) return {};
  std::string text =
      fmt::format("counters   {} page faults, {} context switches ({} involuntary)",
                  of("page_faults"), of("context_switches"), of("involuntary_context_switches"));
  if (values.contains("cpu_migrations")) {
    text += fmt::format(", {} CPU migrations", of("cpu_migrations"));
  }
  text += " per step\n";
  const std::string& why = profile.counts.why_no_hardware;
  return text + cut("           " +
                        (why.empty() ? hardware_text(profile) : "no hardware counters: " + why),
                    config.columns);
}

}  // namespace

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string profile_text(const Profile& profile, const TextConfig& config) {
  std::string text = step_text(profile, config) + loader_text(profile) +
                     memory_text(profile.memory, config) + counters_text(profile, config);
  text += "\n" + phases_text(profile);
  if (!profile.ranks.empty()) text += "\n" + ranks_text(profile);
  if (!profile.layers.empty()) text += "\n" + layers_text(profile, config);
  if (!profile.why_no_layers.empty()) {
    text += fmt::format("\nlayers     unknown: {}\n", profile.why_no_layers);
  }
  if (!profile.operators.empty()) text += "\n" + operators_text(profile, config);
  return text;
}

}  // namespace gallop::profile
