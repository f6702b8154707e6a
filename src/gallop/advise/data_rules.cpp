#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/advise/rules.h"
#include "gallop/profile/profile_text.h"

namespace gallop::advise {

using profile::percent;

namespace {

constexpr double kLeastWait = 0.05;
constexpr double kLeastGain = 1.05;

// What the loader does in a step.
struct Loading {
  double work = 0;    // Seconds of all its threads.
  double read = 0;    // Of these, reading files.
  double rest = 0;    // Of the step without waiting.
  double shared = 0;  // Core-seconds of the step besides the loader's.
};

Loading loading_of(const Facts& facts) {
  Loading loading{.rest = facts.profile.seconds - facts.phase("data wait")};
  for (const profile::PhaseTime& part : facts.profile.loader.parts) {
    loading.work += part.seconds;
    if (part.name == "read") loading.read += part.seconds;
  }
  // On a GPU the cores are the loader's.
  if (!facts.on_gpu) loading.shared = loading.rest * static_cast<double>(facts.settings.threads);
  return loading;
}

// With so many threads, the loader and the step overlap fully or not at all.
Gain gain_with(const Facts& facts, const Loading& loading, double threads) {
  const double alone = loading.work / threads;
  const double overlapped = std::max(
      {loading.rest, alone, (loading.shared + loading.work) / static_cast<double>(facts.cores)});
  const double step = facts.profile.seconds;
  return {.low = std::max(1.0, step / std::max(overlapped, loading.rest + alone / 2)),
          .high = std::max(1.0, step / overlapped),
          .basis = "computed from the loader's work"};
}

// Takes the gain that was measured, if it was; nothing if that is no gain.
std::optional<Advice> measured(const Facts& facts, Advice advice) {
  const Trial* trial = facts.trial(advice.options.front());
  if (trial == nullptr) return advice;
  advice.gain = gain_of(facts, *trial);
  if (advice.gain.high <= kLeastGain) return std::nullopt;
  return advice;
}

std::string threads_text(int64_t threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

std::string wait_text(const Facts& facts) {
  return fmt::format("{} of the step is spent waiting for data ({} steps)",
                     percent(facts.share_of_phase("data wait")), facts.profile.steps);
}

}  // namespace

std::optional<Advice> data_wait(const Facts& facts) {
  const int64_t threads = facts.settings.data_threads;
  if (threads == 0 || facts.share_of_phase("data wait") < kLeastWait) return std::nullopt;
  const Loading loading = loading_of(facts);
  const double busy = facts.profile.loader.busy;
  const std::string evidence =
      fmt::format("{}; the loader's {} {} {} busy", wait_text(facts), threads_text(threads),
                  threads == 1 ? "is" : "are", percent(busy));
  const auto needed = static_cast<int64_t>(std::ceil(loading.work / std::max(loading.rest, 1e-9)));
  const int64_t useful = std::clamp<int64_t>(needed, threads + 1, facts.cores);
  if (busy > 0.5 && threads < facts.cores) {
    const auto advice =
        measured(facts, {.finding = evidence,
                         .remedy = fmt::format("Set data.threads to {} ({} cores, {} in use)",
                                               useful, facts.cores, threads),
                         .options = {fmt::format("data.threads={}", useful)},
                         .gain = gain_with(facts, loading, static_cast<double>(useful))});
    if (advice) return advice;
  }
  const Gain at_best{.low = 1,
                     .high = facts.profile.seconds / std::max(loading.rest, 1e-9),
                     .basis = "the step without waiting"};
  if (loading.read > loading.work / 2) {
    return Advice{.finding = fmt::format("{}, {} of the time with reading files", evidence,
                                         percent(loading.read / loading.work)),
                  .remedy =
                      "Put the files on a faster disk or into tar shards, or set data.in_memory to "
                      "yes, which reads them once",
                  .options = {"data.in_memory=yes"},
                  .gain = at_best};
  }
  return Advice{.finding = evidence,
                .remedy =
                    "More threads would not help: smaller image files, fewer "
                    "augmentations or data.in_memory=yes would",
                .options = {"data.in_memory=yes"},
                .gain = at_best};
}

std::optional<Advice> loader_in_training_thread(const Facts& facts) {
  if (facts.settings.data_threads != 0 || facts.share_of_phase("data wait") < kLeastWait) {
    return std::nullopt;
  }
  Loading loading = loading_of(facts);
  loading.work = facts.phase("data wait");
  const int64_t threads = std::clamp<int64_t>(
      static_cast<int64_t>(std::ceil(loading.work / loading.rest)), 1, facts.cores);
  return measured(facts, {.finding = fmt::format("{}, which the training's thread prepares itself",
                                                 wait_text(facts)),
                          .remedy = fmt::format("Set data.threads to {}", threads),
                          .options = {fmt::format("data.threads={}", threads)},
                          .gain = gain_with(facts, loading, static_cast<double>(threads))});
}

}  // namespace gallop::advise
