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
constexpr int64_t kReaders = 16;  // Threads that may wait for a disk.

// What the loader does in a step.
struct Loading {
  double work = 0;    // Seconds of all its threads.
  double read = 0;    // Part of these for reading files.
  double cached = 0;  // Part of these that a cache of decoded samples saves.
  double rest = 0;    // Seconds of the step without waiting.
  double shared = 0;  // Core-seconds of the step besides the loader's.

  bool is_reading() const { return read > work / 2; }
};

Loading loading_of(const Facts& facts) {
  Loading loading{.rest = facts.profile.seconds - facts.phase("data wait")};
  for (const profile::PhaseTime& part : facts.profile.loader.parts) {
    loading.work += part.seconds;
    if (part.name == "read") loading.read += part.seconds;
    const bool is_saved = part.name == "read" || part.name == "decode" || part.name == "resize";
    if (is_saved) loading.cached += part.seconds;
  }
  if (facts.settings.data_threads == 0) loading.work = facts.phase("data wait");
  // On a GPU the cores are the loader's.
  if (!facts.on_gpu) loading.shared = loading.rest * static_cast<double>(facts.settings.threads);
  return loading;
}

// With so many threads, the loader and the step overlap fully or not at all.
Gain gain_with(const Facts& facts, const Loading& loading, double threads) {
  const double alone = loading.work / threads;
  const double on_cores = loading.shared + loading.work - loading.read;
  const double overlapped =
      std::max({loading.rest, alone, on_cores / static_cast<double>(facts.cores)});
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

bool waits_for_data(const Facts& facts) { return facts.share_of_phase("data wait") >= kLeastWait; }

std::optional<int64_t> useful_loader_threads(const Facts& facts) {
  if (!waits_for_data(facts)) return std::nullopt;
  const Loading loading = loading_of(facts);
  const int64_t threads = facts.settings.data_threads;
  // Threads that wait for a disk leave the cores to others.
  const int64_t most =
      loading.is_reading() ? std::max<int64_t>(facts.cores, kReaders) : facts.cores;
  const bool is_busy = threads == 0 || facts.profile.loader.busy > 0.5;
  if (!is_busy || threads >= most) return std::nullopt;
  const double needed = std::ceil(loading.work / std::max(loading.rest, 1e-9));
  return std::clamp(static_cast<int64_t>(needed), threads + 1, most);
}

std::optional<Advice> data_wait(const Facts& facts) {
  const int64_t threads = facts.settings.data_threads;
  if (threads == 0 || !waits_for_data(facts)) return std::nullopt;
  const Loading loading = loading_of(facts);
  const double busy = facts.profile.loader.busy;
  const std::string evidence =
      fmt::format("{}; the loader's {} {} {} busy", wait_text(facts), threads_text(threads),
                  threads == 1 ? "is" : "are", percent(busy));
  const std::string reading =
      loading.is_reading()
          ? fmt::format(", {} of the time with reading files", percent(loading.read / loading.work))
          : std::string();
  std::optional<Advice> best;
  const auto consider = [&](const Advice& advice) {
    if (!best || advice.expected() > best->expected()) best = advice;
  };
  if (const auto useful = useful_loader_threads(facts)) {
    const auto advice =
        measured(facts, {.finding = evidence + reading,
                         .remedy = fmt::format("Set data.threads to {} ({} cores, {} in use)",
                                               *useful, facts.cores, threads),
                         .options = {fmt::format("data.threads={}", *useful)},
                         .gain = gain_with(facts, loading, static_cast<double>(*useful))});
    if (advice) consider(*advice);
  }
  if (facts.settings.can_cache && loading.cached > loading.work / 2) {
    Loading kept = loading;
    kept.work -= loading.cached;
    kept.read = 0;
    // A step that does not wait finds its caches warm and its cores free.
    if (facts.step_alone > 0) {
      kept.shared *= std::min(1.0, facts.step_alone / kept.rest);
      kept.rest = std::min(kept.rest, facts.step_alone);
    }
    Advice advice{.finding = evidence + reading,
                  .remedy = "Set data.in_memory to yes, which reads and decodes each sample once",
                  .options = {"data.in_memory=yes"},
                  .gain = gain_with(facts, kept, static_cast<double>(threads))};
    advice.gain.basis = "computed for the second epoch and later ones";
    consider(advice);
  }
  if (best) return best;
  return Advice{.finding = evidence + reading,
                .remedy = loading.is_reading()
                              ? "Put the files on a faster disk, or into tar shards"
                              : "More threads would not help; smaller files or fewer "
                                "augmentations would",
                .gain = {.low = 1,
                         .high = facts.profile.seconds / std::max(loading.rest, 1e-9),
                         .basis = "the step without waiting"}};
}

std::optional<Advice> loader_in_training_thread(const Facts& facts) {
  if (facts.settings.data_threads != 0) return std::nullopt;
  const auto threads = useful_loader_threads(facts);
  if (!threads) return std::nullopt;
  return measured(
      facts,
      {.finding = fmt::format("{}, which the training thread prepares itself", wait_text(facts)),
       .remedy = fmt::format("Set data.threads to {}", *threads),
       .options = {fmt::format("data.threads={}", *threads)},
       .gain = gain_with(facts, loading_of(facts), static_cast<double>(*threads))});
}

}  // namespace gallop::advise
