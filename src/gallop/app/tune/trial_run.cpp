#include "gallop/app/tune/trial_run.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/tune/output_lines.h"
#include "gallop/base/clock.h"
#include "gallop/base/energy.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/track/run_folder.h"
#include "gallop/tune/patience.h"
#include "gallop/tune/target_metric.h"
#include "gallop/tune/trial_args.h"

namespace gallop::app {

namespace {

using tune::Verdict;

constexpr double kGraceSeconds = 30;
// Time for leftover processes of a trial, such as 'tee', to flush their output.
constexpr double kLeftSeconds = 2;
constexpr double kRequestSeconds = 1;
constexpr int kLookMilliseconds = 100;
constexpr size_t kLongestSaid = 400;  // Characters of the last line, in messages.

/// Steps that a trial got from another one.
struct Shared {
  int64_t trial = -1;
  int64_t steps = 0;
};

// Parses the message of 'gallop train --share'; the other run is named after its trial's number.
std::optional<Shared> shared_beginning(std::string_view line) {
  if (!line.starts_with(R"({"event":"shared")")) return {};
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("run") || !json["run"].is_string()) return {};
  const auto trial = parse_number<int64_t>(json["run"].get<std::string>());
  const auto step = json.find("step");
  if (!trial || step == json.end() || !step->is_number_unsigned()) return {};
  return Shared{*trial, step->get<int64_t>()};
}

// Slurm and terminals stop all processes of a job, a trial possibly before this one.
bool is_of_request(const ChildEnd& end) {
  constexpr std::array kSignals = {SIGUSR1, SIGTERM, SIGINT, SIGHUP};
  return std::any_of(kSignals.begin(), kSignals.end(), [&](int signal) {
    // Exit code convention of shells.
    return end.signal == signal || end.exit_code == 128 + signal;
  });
}

bool comes_soon(const StopRequest& stop) {
  const double until = monotonic_seconds() + kRequestSeconds;
  while (!stop.requested() && monotonic_seconds() < until) usleep(1000 * kLookMilliseconds);
  return stop.requested();
}

/// A running trial.
class Run {
 public:
  Run(tune::StudyClient& client, const tune::RunSpec& spec, const tune::Assignment& assignment,
      const TrialPlace& place, const TrialReports& reports, const StopRequest& stop)
      : client_(client),
        stop_(stop),
        trial_(assignment.trial),
        place_(place),
        is_recipe_(!spec.recipe.empty()),
        metrics_(client.settings(), spec, reports),
        child_(trial_command(client.settings(), spec, assignment, place, reports.unit)),
        lines_(child_.output(), place.output(trial_.number)) {}

  void follow() {
    const double pause = client_.settings().heartbeat_seconds / 3;
    double beat_at = monotonic_seconds();
    bool is_open = true;
    while (is_open || !child_.has_ended()) {
      if (is_open) {
        is_open = lines_.wait(std::chrono::milliseconds(kLookMilliseconds)) && !is_long_over();
      } else {
        usleep(1000 * kLookMilliseconds);
      }
      lines_.each_line([&](std::string_view line) { take(line); });
      if (!is_open) lines_.last_line([&](std::string_view line) { take(line); });
      joules_ += energy_.joules();
      if (stop_.requested()) end(Why::kStopped);
      if (ended_at_ > 0 && monotonic_seconds() - ended_at_ > kGraceSeconds) child_.kill_all();
      if (why_ == Why::kGone || monotonic_seconds() - beat_at < pause) continue;
      beat_at = monotonic_seconds();
      with_leader([&] { obey(client_.heartbeat(trial_)); });
    }
    child_.kill_all();  // Including leftover processes of its group.
    const ChildEnd ended = child_.wait();
    if (why_ == Why::kItself && is_of_request(ended) && comes_soon(stop_)) why_ = Why::kStopped;
    with_leader([&] { tell(ended); });
  }

 private:
  enum class Why { kItself, kPruned, kSettled, kStopped, kGone };

  // On a stop, the leader may be the first to end. The study resumes the trial from its last
  // checkpoint.
  template <typename Call>
  void with_leader(const Call& call) {
    try {
      call();
    } catch (const tune::StudyUnreachable&) {
      if (!stop_.requested()) throw;
      end(Why::kGone);
    }
  }

  void take(std::string_view line) {
    const auto report = metrics_.take(line);
    if (!line.empty() && line.front() != '{') last_line_ = line;
    if (const auto shared = is_recipe_ ? shared_beginning(line) : std::nullopt) {
      with_leader([&] { client_.share(trial_, shared->trial, shared->steps); });
    }
    // A report that another process of this trial made is already known.
    const bool is_known = report && report->is_earlier && !trial_.reports.empty() &&
                          report->step <= trial_.reports.back().step;
    if (report && !is_known && why_ == Why::kItself) {
      with_leader([&] { obey(client_.report(trial_, report->step, report->value)); });
    }
    if (metrics_.is_settled()) end(Why::kSettled);
  }

  // Whether it ended so long ago that processes which keep its output open are not waited for.
  bool is_long_over() {
    if (!child_.has_ended()) return false;
    if (over_at_ == 0) over_at_ = monotonic_seconds();
    return monotonic_seconds() - over_at_ > kLeftSeconds;
  }

  void obey(Verdict verdict) {
    if (verdict == Verdict::kPrune) end(Why::kPruned);
    if (verdict == Verdict::kAbandon) end(Why::kGone);
  }

  void end(Why why) {
    if (why == Why::kGone) why_ = why;
    if (ended_at_ > 0) return;
    why_ = why;
    ended_at_ = monotonic_seconds();
    child_.send(SIGTERM);
  }

  void tell(const ChildEnd& end) {
    switch (why_) {
      case Why::kGone: return;
      case Why::kPruned: client_.tell(trial_, {.state = tune::TrialState::kPruned}); return;
      case Why::kStopped:
        // Programs may save and exit with 0 when they are stopped; only a recipe distinguishes the
        // two.
        if (!is_recipe_ || !end.is_good()) return client_.release(trial_);
        break;
      case Why::kSettled: client_.tell(trial_, outcome()); return;
      case Why::kItself: break;
    }
    if (is_recipe_ && end.exit_code == static_cast<int>(ExitCode::kStopped)) {
      return client_.release(trial_);
    }
    if (end.is_good()) {
      client_.tell(trial_, outcome());
    } else {
      client_.tell(trial_, failed(fmt::format("{}{}", end.describe(), said())));
    }
  }

  std::string said() const {
    if (last_line_.empty()) return {};
    return ": " + printable(tune::shortened(last_line_, kLongestSaid));
  }

  tune::Outcome failed(const std::string& why) const {
    return {.state = tune::TrialState::kFailed,
            .message = fmt::format("{} (see {})", why, place_.output(trial_.number).string())};
  }

  tune::Outcome failed_without(const std::string& metric) const {
    if (is_recipe_ && trial_.parent >= 0) {
      return failed(
          fmt::format("it had nothing left to train, but should continue to evaluation {}: "
                      "the recipe ends earlier",
                      trial_.last_step));
    }
    const std::string how =
        is_recipe_ ? "" : fmt::format(R"( in a line such as {{"{}": 0.5}})", metric);
    return failed(fmt::format("it has not printed '{}'{}", metric, how));
  }

  std::optional<double> value_of(const std::string& metric) const {
    return metric == "joules" ? std::optional(joules_) : metrics_.value_of(metric);
  }

  // "the best accuracy was 0.81" for "seconds to accuracy 0.9"; empty if it was never reported.
  std::string nearest_to(const std::string& metric) const {
    const auto target = tune::parse_target_metric(metric);
    const auto best = target ? metrics_.value_of("best_" + target->metric) : std::nullopt;
    if (!best) return {};
    return fmt::format("the best {} was {:.6g}", printable(target->metric), *best);
  }

  tune::Outcome outcome() const {
    tune::Outcome outcome;
    for (const auto& objective : client_.settings().objectives) {
      const auto value = value_of(objective.metric);
      // An unreached target has no time.
      if (!value && objective.metric.starts_with(tune::kSecondsTo)) {
        return {.state = tune::TrialState::kPruned, .message = nearest_to(objective.metric)};
      }
      if (!value) return failed_without(objective.metric);
      if (std::isnan(*value) && objective.metric.starts_with(tune::kSecondsTo)) {
        return failed(fmt::format("it has not printed 'training_seconds', by which '{}' counts",
                                  printable(objective.metric)));
      }
      outcome.values.push_back(*value);
    }
    for (const auto& limit : client_.settings().limits) {
      const auto value = value_of(limit.metric);
      if (!value) return failed_without(limit.metric);
      outcome.limited.push_back(*value);
    }
    return outcome;
  }

  tune::StudyClient& client_;
  const StopRequest& stop_;
  const tune::Trial& trial_;
  const TrialPlace& place_;
  bool is_recipe_;
  TrialMetrics metrics_;
  ChildProcess child_;
  OutputLines lines_;
  EnergyCounter energy_;
  double joules_ = 0;
  std::string last_line_;
  Why why_ = Why::kItself;
  double ended_at_ = 0;  // When it was asked to end.
  double over_at_ = 0;   // When its end was noticed.
};

// A trial's process may outlive a suspended worker, and trains to the end of the run. False if the
// trial was reassigned, or must stop.
bool wait_for_run(tune::StudyClient& client, const tune::Trial& trial, const fs::path& run,
                  const StopRequest& stop) {
  const double pause = client.settings().heartbeat_seconds / 3;
  double beat_at = monotonic_seconds();
  while (track::RunFolder::is_trained(run)) {
    if (stop.requested()) {
      client.release(trial);
      return false;
    }
    if (monotonic_seconds() - beat_at > pause) {
      beat_at = monotonic_seconds();
      if (client.heartbeat(trial) == Verdict::kAbandon) return false;
    }
    usleep(1000 * kLookMilliseconds);
  }
  return true;
}

}  // namespace

void run_trial(tune::StudyClient& client, const tune::RunSpec& spec,
               const tune::Assignment& assignment, const TrialPlace& place,
               const TrialReports& reports, const StopRequest& stop) {
  make_folders(place.run(assignment.trial.number).parent_path());
  make_folders(place.output(assignment.trial.number).parent_path());
  if (tune::wants_arguments_file(spec)) {
    write_file_atomically(
        tune::arguments_file(place.run(assignment.trial.number).string()),
        tune::arguments_json(spec, client.settings().space, assignment.trial.point) + "\n");
  }
  const fs::path run_folder = place.run(assignment.trial.number);
  client.set_run_folder(assignment.trial, run_folder.string());
  if (spec.recipe.empty()) make_folders(run_folder);
  if (!spec.recipe.empty() && !wait_for_run(client, assignment.trial, run_folder, stop)) return;
  std::unique_ptr<Run> run;
  try {
    run = std::make_unique<Run>(client, spec, assignment, place, reports, stop);
  } catch (const Error& error) {
    client.tell(assignment.trial, {.state = tune::TrialState::kFailed, .message = error.what()});
    return;
  }
  run->follow();
}

}  // namespace gallop::app
