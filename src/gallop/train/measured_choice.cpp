#include "gallop/train/measured_choice.h"

#include <dirent.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/clock.h"

namespace gallop::train {

namespace {

constexpr double kNever = std::numeric_limits<double>::max();

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Time in which threads of this process were runnable and waited for a core, as far as the kernel
// reports it (Documentation/scheduler/sched-stats.rst).
double seconds_waited_for_cores() {
  constexpr const char* kTasks = "/proc/self/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir(kTasks), closedir);
  if (tasks == nullptr) return 0;
  double nanoseconds = 0;
  while (const dirent* const task = readdir(tasks.get())) {
    if (task->d_name[0] == '.') continue;
    const std::string path = fmt::format("{}/{}/schedstat", kTasks, task->d_name);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                               std::fclose);
    unsigned long long ran = 0, waited = 0;
    if (file == nullptr || std::fscanf(file.get(), "%llu %llu", &ran, &waited) != 2) continue;
    nanoseconds += static_cast<double>(waited);
  }
  return 1e-9 * nanoseconds;
}

class Chooser {
 public:
  Chooser(const std::vector<std::string>& names, const MeasuredChoiceConfig& config)
      : config_(config) {
    for (const std::string& name : names) {
      choice_.candidates.push_back({.name = name, .seconds = kNever});
    }
  }

  MeasuredChoice choose(const std::function<MeasuredCost(size_t)>& measure) {
    while (needs_round()) {
      choice_.rounds += 1;
      for (size_t i = 0; i < choice_.candidates.size(); ++i) {
        if (!is_hopeless(choice_.candidates[i])) take(choice_.candidates[i], measure(i));
      }
      judge();
    }
    return std::move(choice_);
  }

 private:
  void take(MeasuredCandidate& candidate, const MeasuredCost& cost) {
    spent_ += std::max(cost.seconds, cost.spent);
    candidate.rounds += 1;
    if (cost.seconds >= candidate.seconds) return;
    candidate.seconds = cost.seconds;
    candidate.busy = cost.busy;
    fastest_ = std::min(fastest_, cost.seconds);
  }

  // On a busy machine, a single time excludes nothing.
  bool is_hopeless(const MeasuredCandidate& candidate) const {
    return candidate.rounds > 0 && !is_busy(candidate) &&
           candidate.seconds > config_.hopeless * fastest_;
  }

  bool is_busy(const MeasuredCandidate& candidate) const { return candidate.busy > config_.busy; }

  bool needs_round() const {
    if (choice_.rounds == 0) return true;
    if (choice_.candidates.size() == 1) return false;
    if (spent_ > budget() || choice_.rounds >= config_.most_rounds) return false;
    if (choice_.rounds < config_.rounds) return true;
    return choice_.is_busy || (choice_.is_close && choice_.rounds < config_.close_rounds);
  }

  // A short run must not spend more time on a choice than it can save.
  double budget() const {
    constexpr double kShareOfRun = 0.05;
    return std::min(config_.most_seconds,
                    std::max(config_.least_seconds, kShareOfRun * config_.uses * fastest_));
  }

  void judge() {
    auto& all = choice_.candidates;
    choice_.chosen = 0;
    for (size_t i = 1; i < all.size(); ++i) {
      if (all[i].seconds < config_.worthwhile * all[choice_.chosen].seconds) choice_.chosen = i;
    }
    const MeasuredCandidate& chosen = all[choice_.chosen];
    choice_.is_close = choice_.is_busy = false;
    if (all.size() == 1) return;
    for (size_t i = 0; i < all.size(); ++i) {
      // The time at which the choice would change.
      const double edge = i < choice_.chosen ? chosen.seconds / config_.worthwhile
                                             : chosen.seconds * config_.worthwhile;
      const bool is_other = i != choice_.chosen;
      choice_.is_close |= is_other && std::abs(all[i].seconds / edge - 1) < config_.close;
      choice_.is_busy |= is_busy(all[i]);
    }
  }

  const MeasuredChoiceConfig& config_;
  MeasuredChoice choice_;
  double spent_ = 0;
  double fastest_ = kNever;
};

}  // namespace

CostMeter::CostMeter(bool works)
    : works_(works),
      waited_(seconds_waited_for_cores()),
      process_(seconds_of(CLOCK_PROCESS_CPUTIME_ID)),
      thread_(seconds_of(CLOCK_THREAD_CPUTIME_ID)),
      wall_(monotonic_seconds()) {}

double CostMeter::thread_seconds() const { return seconds_of(CLOCK_THREAD_CPUTIME_ID) - thread_; }

MeasuredCost CostMeter::read() const {
  const double wall = monotonic_seconds() - wall_;
  const double ran = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - process_;
  const double own = thread_seconds();
  const double waited = std::max(0.0, seconds_waited_for_cores() - waited_);
  double busy = waited > 0 ? waited / (waited + ran) : 0;
  // The calling thread waits for other threads for a while even on idle cores.
  constexpr double kIdleWaits = 0.25;
  if (works_ && wall > 0) busy = std::max(busy, 1 - own / wall - kIdleWaits);
  return {.seconds = wall, .busy = std::clamp(busy, 0.0, 1.0)};
}

std::string MeasuredChoice::times(double scale) const {
  std::vector<std::string> all;
  for (const MeasuredCandidate& one : candidates) {
    all.push_back(fmt::format("{} {:.1f} ms", one.name, 1e3 * scale * one.seconds));
  }
  all.insert(all.end(), excluded.begin(), excluded.end());
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string MeasuredChoice::evidence(double scale) const {
  std::vector<std::string> all;
  for (const MeasuredCandidate& one : candidates) {
    all.push_back(fmt::format("{} {:.1f} ms ({} round{}, {:.0f} % busy)", one.name,
                              1e3 * scale * one.seconds, one.rounds, one.rounds == 1 ? "" : "s",
                              100 * one.busy));
  }
  all.insert(all.end(), excluded.begin(), excluded.end());
  const char* const reason = candidates.size() == 1 ? "the only one of"
                             : is_busy              ? "the fastest on a busy machine of"
                             : is_close             ? "hardly different from the fastest of"
                                                    : "the fastest of";
  return fmt::format("{}: {} {}", candidates[chosen].name, reason, fmt::join(all, ", "));
}

MeasuredChoice choose_by_measuring(const std::vector<std::string>& names,
                                   const std::function<MeasuredCost(size_t candidate)>& measure,
                                   const MeasuredChoiceConfig& config) {
  return Chooser(names, config).choose(measure);
}

}  // namespace gallop::train
