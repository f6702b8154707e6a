#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "gallop/advise/rules.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/profile/profile_text.h"
#include "gallop/profile/rank_times.h"

namespace gallop::advise {

using profile::percent;

namespace {

// Fraction of the step by which the slowest process exceeds the mean: less is noise.
constexpr double kLeastExcess = 0.02;

// The uncertainty of times.
constexpr double kSpread = 0.05;

// Evaluations and checkpoints are advised to take at most this share of the time.
constexpr double kShareOfEvaluations = 0.05, kShareOfCheckpoints = 0.02;

// Evaluations and checkpoints at the end of a run remain.
constexpr const char* kNever = "never";

// Something other than the step that takes a part of the time.
struct Phase {
  double share = 0;
  double rest = 0;  // The least share that is left without it.
  std::string finding;
};

Phase phase_of_step(const Facts& facts, const std::string& name, const std::string& what) {
  const double share = facts.share_of_phase(name);
  // A step that nothing interrupts finds its caches warm.
  const double computed = compute_share(facts);
  const double alone = facts.step_alone > 0
                           ? std::min(computed, facts.profile.share_of(facts.step_alone))
                           : computed;
  return {.share = share,
          .rest = 1 - share - computed + alone,
          .finding = fmt::format("{} {} of the time ({} steps)", what, percent(share),
                                 facts.profile.steps)};
}

// What is gained if at least the share `saved` of the time is.
Gain gain_without(const Phase& phase, double saved) {
  return {.low = std::max(1.0, (1 - kSpread) * speedup_without(saved)),
          .high = std::max((1 + kSpread) * speedup_without(phase.share),
                           speedup_without(1 - phase.rest)),
          .basis = "the time without it"};
}

// The least of 2, 3, 5, 10, 20, ... times as seldom that leaves it at most the share `left`.
int64_t times_as_seldom(double share, double left) {
  const double needed = (speedup_without(share) - 1) / (speedup_without(left) - 1);
  for (int64_t power = 1;; power *= 10) {
    for (const int64_t digit : {2, 3, 5, 10}) {
      if (static_cast<double>(digit * power) >= needed) return digit * power;
    }
  }
}

// "30 steps" for ten times "3 steps".
std::string longer_interval(const std::string& interval, int64_t times) {
  double count = 0;
  const char* const end = interval.data() + interval.size();
  const auto [stop, error] = std::from_chars(interval.data(), end, count);
  if (error != std::errc() || stop == end) {
    throw InternalError("advise: '" + interval + "' is not an interval");
  }
  std::string unit(*stop == ' ' ? stop + 1 : stop, end);
  if (unit == "epoch" || unit == "step") unit += 's';
  return fmt::format("{:.10g} {}", count * static_cast<double>(times), unit);
}

Advice less_often(const Phase& phase, double left, const std::string& what,
                  const std::string& option, const std::string& interval) {
  const int64_t times = times_as_seldom(phase.share, left);
  const std::string longer = longer_interval(interval, times);
  return {.finding = phase.finding,
          .remedy =
              fmt::format("{} less often: {}='{}' instead of '{}'", what, option, longer, interval),
          .options = {option + "=" + longer},
          .gain = gain_without(phase, phase.share * (1 - 1 / static_cast<double>(times)))};
}

}  // namespace

std::optional<Advice> verification(const Facts& facts) {
  if (!facts.settings.verifies) return std::nullopt;
  return Advice{.finding = "train.compile is verify, so steps are computed a second time",
                .remedy = "Set train.compile to true once they have been verified",
                .options = {"train.compile=true"},
                .gain = {.low = 1, .high = 1, .basis = ""}};
}

std::optional<Advice> evaluation_share(const Facts& facts) {
  Phase phase = phase_of_step(facts, "evaluation", "Evaluations take");
  if (const double of_run = facts.evaluation_share_of_run; of_run > 0) {
    phase = {.share = of_run,
             .rest = 1 - of_run,
             .finding = fmt::format("Evaluations take {} of the run so far", percent(of_run))};
  }
  if (phase.share < 0.1 || facts.settings.evaluate_every == kNever) return std::nullopt;
  return less_often(phase, kShareOfEvaluations, "Evaluate", "train.evaluate_every",
                    facts.settings.evaluate_every);
}

std::optional<Advice> checkpoint_share(const Facts& facts) {
  const Phase phase = phase_of_step(facts, "checkpoint", "Checkpoints take");
  if (phase.share < 0.05 || facts.settings.checkpoint_every == kNever) return std::nullopt;
  Advice advice = less_often(phase, kShareOfCheckpoints, "Save", "train.checkpoint_every",
                             facts.settings.checkpoint_every);
  if (!facts.settings.checkpoint_in_background) {
    advice.options.emplace_back("train.checkpoint_in_background=true");
    advice.remedy += ", and with train.checkpoint_in_background=true";
  }
  return advice;
}

std::optional<Advice> report_share(const Facts& facts) {
  const Phase phase = phase_of_step(facts, "report", "Logging takes");
  if (phase.share < 0.05) return std::nullopt;
  return Advice{.finding = phase.finding,
                .remedy = "Steps are too short for what is logged: use larger batches",
                .gain = gain_without(phase, phase.share)};
}

std::optional<Advice> communication_share(const Facts& facts) {
  const double share = facts.share_of_phase("communication");
  if (share < 0.1) return std::nullopt;
  const Settings& settings = facts.settings;
  const int64_t more = 2 * settings.micro_batches;
  const bool can_compress = settings.strategy == "ddp" && !settings.compresses_gradients;
  return Advice{.finding = fmt::format("{} of the step waits for other processes", percent(share)),
                .remedy = fmt::format(
                    "Exchange gradients less often: train.gradient_accumulation={} with "
                    "twice the batch{}",
                    more, can_compress ? "; or compress them (parallel.compress=bf16)" : ""),
                .options = {fmt::format("train.gradient_accumulation={}", more),
                            fmt::format("data.batch_size={}", 2 * facts.settings.batch_size)},
                .gain = {.low = speedup_without(share / 4),
                         .high = speedup_without(share / 2),
                         .basis = "half of the exchanges"}};
}

namespace {

// Communication in a step of processes that sum gradients in buckets.
struct Communication {
  double exposed = 0;  // Seconds that the process waits which comes last, and waits for no other.
  double overlapped = 0;  // Seconds beside other work, of that process.
};

// Nothing where it hardly matters, or is not by buckets.
std::optional<Communication> communication_of(const Facts& facts) {
  constexpr double kLeastShare = 0.05;
  const std::vector<profile::RankTime>& ranks = facts.profile.ranks;
  if (ranks.size() < 2 || facts.settings.strategy != "ddp") return std::nullopt;
  const auto last = std::min_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return a.exposed_communication < b.exposed_communication;
  });
  if (facts.profile.share_of(last->exposed_communication) < kLeastShare) return std::nullopt;
  return Communication{.exposed = last->exposed_communication,
                       .overlapped = last->overlapped_communication};
}

}  // namespace

std::optional<Advice> bucket_size(const Facts& facts) {
  const auto found = communication_of(facts);
  if (!found || facts.settings.measured_buckets || found->overlapped > found->exposed) {
    return std::nullopt;
  }
  const double all = found->exposed + found->overlapped;
  const double room = std::max(0.0, facts.phase("backward") - found->overlapped);
  const double saved = facts.profile.share_of(std::min(found->exposed, room));
  return Advice{
      .finding = fmt::format("{} of the step waits for the all-reduce of gradients; {} of the "
                             "communication overlaps with the backward pass",
                             percent(facts.profile.share_of(found->exposed)),
                             percent(found->overlapped / all)),
      .remedy =
          "Set parallel.bucket to auto, which times buckets of 1 to 100 MiB when a run starts",
      .options = {"parallel.bucket=auto"},
      .gain = {.low = 1,
               .high = speedup_without(saved),
               .basis = "if communication overlaps with the whole backward pass"}};
}

std::optional<Advice> gradient_order(const Facts& facts) {
  constexpr double kLeastPart = 0.3;
  const auto found = communication_of(facts);
  const GradientFacts& gradients = facts.gradients;
  if (!found || gradients.late.empty()) return std::nullopt;
  const double part =
      static_cast<double>(gradients.late_bytes) / static_cast<double>(gradients.bytes);
  if (part < kLeastPart) return std::nullopt;
  const bool compresses = facts.settings.compresses_gradients;
  const double waits = std::min(found->exposed, part * (found->exposed + found->overlapped));
  return Advice{
      .finding = fmt::format("The gradient of {}, {} of {}, is among the last that the backward "
                             "pass computes, so its all-reduce overlaps with nothing",
                             gradients.late, format_bytes(gradients.late_bytes),
                             format_bytes(gradients.bytes)),
      .remedy =
          compresses
              ? "Make this layer smaller, or freeze it (train.freeze), if the model allows it"
              : "Set parallel.compress to bf16, which halves what is sent; or make this layer "
                "smaller, or freeze it",
      .options = compresses ? std::vector<std::string>()
                            : std::vector<std::string>{"parallel.compress=bf16"},
      .gain = {.low = 1,
               .high = compresses ? 1 : speedup_without(facts.profile.share_of(waits / 2)),
               .basis = "half of the wait for this all-reduce"}};
}

std::optional<Advice> rank_skew(const Facts& facts) {
  const std::vector<profile::RankTime>& ranks = facts.profile.ranks;
  const double skew = profile::rank_skew(ranks);
  if (skew < 0.1) return std::nullopt;
  const auto slowest =
      std::max_element(ranks.begin(), ranks.end(),
                       [](const auto& a, const auto& b) { return a.compute < b.compute; });
  const auto fastest =
      std::min_element(ranks.begin(), ranks.end(),
                       [](const auto& a, const auto& b) { return a.compute < b.compute; });
  double mean = 0;
  for (const auto& one : ranks) mean += one.compute / static_cast<double>(ranks.size());
  const double excess = facts.profile.share_of(slowest->compute - mean);
  if (excess < kLeastExcess) return std::nullopt;
  const std::string last = slowest->last_into_collectives > 0.5
                               ? fmt::format("; rank {} comes last into {} of the collectives",
                                             slowest->rank, percent(slowest->last_into_collectives))
                               : std::string();
  return Advice{
      .finding = fmt::format("Rank {} on {} computes {:.2f} ms per step, and rank {} {:.2f} ms, a "
                             "skew of {}{}",
                             slowest->rank, slowest->host, 1e3 * slowest->compute, fastest->rank,
                             1e3 * fastest->compute, percent(skew), last),
      .remedy = fmt::format("All wait for the slowest one: look for other programs, fewer cores or "
                            "a lower clock rate on {}",
                            slowest->host),
      .gain = {
          .low = 1, .high = speedup_without(excess), .basis = "if all ranks took the mean time"}};
}

std::optional<Advice> other_programs(const Facts& facts) {
  const double cores = facts.cores, others = facts.other_cores;
  if (facts.on_gpu || others < 0.1 * cores) return std::nullopt;
  const auto processes = static_cast<double>(std::max<size_t>(1, facts.profile.ranks.size()));
  // Cores that the training leaves free.
  if (others + processes * static_cast<double>(facts.settings.threads) <= cores) {
    return std::nullopt;
  }
  // They take half of a core from one thread each, or more, and all threads wait for the slowest.
  const double shared = std::clamp(std::round(2 * others), 1.0, cores);
  const double gain = speedup_without(others / shared);
  // Threads that yield their cores to others take longer to wait for each other.
  const double yielding = facts.settings.threads > 1 ? 1.5 : 1;
  return Advice{
      .finding = fmt::format("Other programs keep {:.1f} of {} cores busy", others, facts.cores),
      .remedy = "Stop them; no option would help",
      .gain = {.low = gain, .high = yielding * gain, .basis = "their fraction of these cores"}};
}

std::optional<Advice> numa_nodes(const Facts& facts) {
  const int nodes = facts.numa_nodes;
  if (facts.on_gpu || nodes < 2 || !facts.profile.ranks.empty()) return std::nullopt;
  // Fewer threads may be on one node.
  if (facts.settings.threads <= facts.cores / nodes) return std::nullopt;
  return Advice{
      .finding = fmt::format("{} threads of one process compute on {} NUMA nodes, so they "
                             "read much of their memory from another node",
                             facts.settings.threads, nodes),
      .remedy = fmt::format("Train with one process per node (gallop launch -n {} train ...), "
                            "among which the batch is divided",
                            nodes)};
}

std::optional<Advice> huge_pages(const Facts& facts) {
  constexpr int64_t kLeastBytes = int64_t{64} << 20;
  if (facts.on_gpu || facts.huge_pages != "never") return std::nullopt;
  const profile::StepMemory& memory = facts.profile.memory;
  const int64_t bytes = memory.parameters + memory.optimizer + memory.peak.total();
  if (bytes < kLeastBytes) return std::nullopt;
  return Advice{
      .finding = fmt::format("A step works on {} in pages of 4 KiB, as the system provides no "
                             "transparent huge pages",
                             format_bytes(bytes)),
      .remedy =
          "As root, write madvise to /sys/kernel/mm/transparent_hugepage/enabled; no option "
          "would help"};
}

std::optional<Advice> uneven_steps(const Facts& facts) {
  const profile::Profile& steps = facts.profile;
  if (steps.steps < 10 || steps.p95 < 1.5 * steps.median) return std::nullopt;
  return Advice{
      .finding = fmt::format(
          "Step times vary: the median is {:.2f} ms, the 95th percentile {:.2f} ms, and "
          "step {} took {:.2f} ms",
          1e3 * steps.median, 1e3 * steps.p95, steps.slowest_step, 1e3 * steps.slowest),
      .remedy =
          "A trace shows what the slow steps do: gallop profile RECIPE --trace FILE, or the "
          "folder profiles of the run",
      .gain = {
          .low = 1, .high = steps.seconds / steps.median, .basis = "if all steps took the median"}};
}

}  // namespace gallop::advise
