#include "gallop/tune/tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"
#include "gallop/tune/chosen.h"
#include "gallop/tune/warm_start.h"

namespace gallop::tune {

namespace {

using Kind = Event::Kind;

constexpr double kSilentHeartbeats = 2;
constexpr size_t kMessageBytes = 4096;

Attempt attempt_of(const Trial& trial) { return {trial.number, trial.attempt}; }

bool is_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool is_failure(const Event& event) {
  return event.kind == Kind::kFinished && event.state == TrialState::kFailed;
}

// What is wrong with the values of a complete trial; empty if valid. `Named` has a `metric`.
template <typename Named>
std::string mistake(const std::vector<Named>& wanted, const std::vector<double>& values) {
  if (values.size() != wanted.size()) {
    return fmt::format("got {} values, expected {}", values.size(), wanted.size());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      return fmt::format("{} is {}", printable(wanted[i].metric), config::number_text(values[i]));
    }
  }
  return {};
}

}  // namespace

Tuner::Tuner(std::unique_ptr<Storage> storage, const TuneRegistries& registries, Clock clock)
    : storage_(std::move(storage)),
      clock_(std::move(clock)),
      study_(storage_->settings()),
      sampler_(make_sampler(registries, study_.settings())),
      pruner_(make_pruner(registries, study_.settings())) {
  refresh();
}

void Tuner::update(const Storage::Answer& answer) {
  std::vector<Event> own;
  storage_->update([this](const Event& event) { study_.apply(event); },
                   [&] {
                     own = answer();
                     return own;
                   });
  for (const Event& event : own) study_.apply(event);
}

void Tuner::refresh() {
  update([] { return std::vector<Event>(); });
}

bool Tuner::is_known(int64_t number) const {
  return number >= 0 && number < static_cast<int64_t>(study_.trials().size());
}

bool Tuner::is_running(const Attempt& attempt) const {
  return is_known(attempt.trial) && at(attempt.trial).state == TrialState::kRunning &&
         at(attempt.trial).attempt == attempt.attempt;
}

Event Tuner::event(Event::Kind kind, int64_t trial) const {
  return {.kind = kind, .trial = trial, .time = clock_()};
}

Event Tuner::queue(int64_t number, int32_t bracket, const Proposal& proposal) const {
  // Persisted events must be valid, as an invalid one makes the study unreadable.
  if (!study_.space().contains(proposal.point)) {
    throw InternalError("the sampler suggested a point outside the space");
  }
  Event queued = event(Kind::kQueued, number);
  queued.bracket = bracket;
  queued.point = proposal.point;
  queued.parent = proposal.parent;
  queued.member = proposal.member;
  queued.last_step =
      proposal.last_step > 0 ? proposal.last_step : pruner_->first_stop(study_, bracket);
  return queued;
}

Event Tuner::start(const Trial& trial, const std::string& worker) const {
  Event started = event(Kind::kStarted, trial.number);
  started.attempt = trial.attempt + 1;
  started.text = worker;
  return started;
}

std::optional<int64_t> Tuner::held_by(const std::string& worker) const {
  const auto& running = study_.running();
  const auto held = std::find_if(running.begin(), running.end(),
                                 [&](int64_t number) { return at(number).worker == worker; });
  if (held == running.end()) return std::nullopt;
  return *held;
}

// The events that assign a trial to the worker; empty if none is available now.
std::vector<Event> Tuner::next_trial(const std::string& worker) {
  if (study_.is_stopped()) return {};
  if (!study_.waiting().empty()) return {start(at(*study_.waiting().begin()), worker)};
  if (const auto promotion = pruner_->promote(study_)) {
    Event requeued = event(Kind::kRequeued, promotion->trial);
    requeued.last_step = promotion->last_step;
    return {requeued, start(at(promotion->trial), worker)};
  }
  const auto number = static_cast<int64_t>(study_.trials().size());
  if (number >= study_.wanted_trials()) return {};
  const int32_t bracket = pruner_->bracket(study_, number);
  const auto proposal = sampler_->ask(study_, number);
  if (proposal) return {queue(number, bracket, *proposal), start({.number = number}, worker)};
  if (study_.running().empty() && !sampler_->is_exhausted(study_)) {
    throw InternalError("the sampler waits for a trial, but none is running");
  }
  return {};
}

Assignment Tuner::ask(const std::string& worker) {
  requeue_silent();
  std::optional<int64_t> given;
  update([&]() -> std::vector<Event> {
    given = held_by(worker);
    if (given) return {};
    std::vector<Event> events = next_trial(worker);
    if (!events.empty()) given = events.back().trial;
    return events;
  });
  if (given) {
    const Trial& trial = at(*given);
    return {.kind = Assignment::Kind::kTrial,
            .trial = trial,
            .parent_folder = trial.parent >= 0 ? at(trial.parent).folder : ""};
  }
  const bool is_done = study_.is_stopped() || study_.running().empty();
  return {.kind = is_done ? Assignment::Kind::kDone : Assignment::Kind::kWait,
          .reason = study_.stop_reason()};
}

void Tuner::set_run_folder(const Trial& trial, const std::string& folder) {
  update([&]() -> std::vector<Event> {
    if (!is_running(attempt_of(trial)) || at(trial.number).folder == folder) return {};
    Event placed = event(Kind::kPlaced, trial.number);
    placed.folder = folder;
    return {placed};
  });
}

void Tuner::share(const Trial& trial, int64_t other, int64_t steps) {
  update([&]() -> std::vector<Event> {
    if (!is_running(attempt_of(trial)) || !is_known(other) || other == trial.number) return {};
    const Trial& known = at(trial.number);
    if (steps <= 0 || (known.shared_with == other && known.shared_steps == steps)) return {};
    Event shared = event(Kind::kShared, trial.number);
    shared.parent = other;
    shared.step = steps;
    return {shared};
  });
}

Verdict Tuner::report(const Trial& trial, int64_t step, double value) {
  const double loss = study_.settings().objectives.front().signed_value(value);
  bool is_mine = false;
  update([&]() -> std::vector<Event> {
    is_mine = is_running(attempt_of(trial));
    if (!is_mine) return {};
    const auto& reports = at(trial.number).reports;
    // A repetition, because the first reply was lost.
    if (!reports.empty() && reports.back().step == step && is_same(reports.back().reported, loss)) {
      return {};
    }
    Event reported = event(Kind::kReported, trial.number);
    reported.step = step;
    reported.losses = {loss};
    return {reported};
  });
  if (!is_mine) return Verdict::kAbandon;
  const Trial& known = at(trial.number);
  const bool is_at_end = known.last_step > 0 && step >= known.last_step;
  return is_at_end || pruner_->should_stop(study_, known) ? Verdict::kPrune : Verdict::kGoOn;
}

Verdict Tuner::heartbeat(const Trial& trial) {
  storage_->heartbeat(attempt_of(trial));
  refresh();
  return is_running(attempt_of(trial)) ? Verdict::kGoOn : Verdict::kAbandon;
}

// Whether a member of a population has reached the last step of its segment. Other trials are
// pruned there, and may be promoted later.
bool Tuner::finished_segment(int64_t number) const {
  if (!is_known(number) || at(number).member < 0) return false;
  const Trial& trial = at(number);
  return trial.last_step > 0 && !trial.reports.empty() &&
         trial.reports.back().step >= trial.last_step;
}

Event Tuner::end(const Trial& trial, const Outcome& outcome) const {
  Event ended = event(Kind::kFinished, trial.number);
  ended.state = outcome.state;
  ended.text = shortened(outcome.message, kMessageBytes);
  const StudySettings& settings = study_.settings();
  std::vector<double> values = outcome.values;
  if (outcome.state == TrialState::kPruned && finished_segment(trial.number)) {
    ended.state = TrialState::kComplete;
    values = {settings.objectives[0].signed_value(at(trial.number).reports.back().reported)};
  }
  if (ended.state != TrialState::kComplete) return ended;
  std::string wrong = mistake(settings.objectives, values);
  if (wrong.empty()) wrong = mistake(settings.limits, outcome.limited);
  if (!wrong.empty()) {
    ended.state = TrialState::kFailed;
    ended.text = wrong;
    return ended;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    ended.losses.push_back(settings.objectives[i].signed_value(values[i]));
  }
  for (size_t i = 0; i < outcome.limited.size(); ++i) {
    ended.violations.push_back(outcome.limited[i] - settings.limits[i].most);
  }
  return ended;
}

// All trials that end in these events have failed.
void Tuner::stop_after_failures(std::vector<Event>& events) const {
  const auto failures = std::count_if(events.begin(), events.end(), is_failure);
  const int32_t most = study_.settings().failures;
  if (failures == 0 || most <= 0 || study_.is_stopped()) return;
  const auto in_a_row = study_.failures_in_a_row() + failures;
  if (in_a_row < most) return;
  Event stopped = event(Kind::kStopped, -1);
  stopped.text = fmt::format("{} consecutive trials failed, the last with: {}", in_a_row,
                             std::find_if(events.rbegin(), events.rend(), is_failure)->text);
  events.push_back(stopped);
}

// The last of these events is the end of a trial.
void Tuner::stop_at_targets(std::vector<Event>& events) const {
  const Event& ended = events.back();
  const auto& objectives = study_.settings().objectives;
  const bool is_feasible = std::all_of(ended.violations.begin(), ended.violations.end(),
                                       [](double violation) { return violation <= 0; });
  if (ended.state != TrialState::kComplete || !is_feasible || study_.is_stopped() ||
      !reach_targets(objectives, ended.losses)) {
    return;
  }
  std::string reached;
  for (size_t i = 0; i < objectives.size(); ++i) {
    if (!objectives[i].target) continue;
    reached += fmt::format("{}{} {:.6g}", reached.empty() ? "" : ", ", objectives[i].metric,
                           objectives[i].signed_value(ended.losses[i]));
  }
  Event stopped = event(Kind::kStopped, -1);
  stopped.text = fmt::format("trial {} reached the target: {}", ended.trial, reached);
  events.push_back(stopped);
}

bool Tuner::tell(const Trial& trial, const Outcome& outcome) {
  if (outcome.state < TrialState::kComplete) {
    throw InternalError("tell() was called for an unfinished trial");
  }
  bool counts = false;
  update([&]() -> std::vector<Event> {
    const Event ended = end(trial, outcome);
    counts = is_running(attempt_of(trial));
    if (counts) {
      std::vector<Event> events = {ended};
      stop_at_targets(events);
      stop_after_failures(events);
      return events;
    }
    // A repetition, because the first reply was lost.
    counts = is_known(trial.number) && at(trial.number).attempt == trial.attempt &&
             at(trial.number).state == ended.state;
    return {};
  });
  return counts;
}

void Tuner::release(const Trial& trial) {
  update([&]() -> std::vector<Event> {
    if (!is_running(attempt_of(trial))) return {};
    Event requeued = event(Kind::kRequeued, trial.number);
    requeued.last_step = at(trial.number).last_step;
    return {requeued};
  });
}

Event Tuner::lose(const Trial& trial) const {
  const int32_t times = trial.vanished + 1;
  if (times >= study_.settings().attempts) {
    Event ended = event(Kind::kFinished, trial.number);
    ended.state = TrialState::kFailed;
    ended.text = fmt::format("its worker was lost, the last of {}: {}", times, trial.worker);
    return ended;
  }
  Event vanished = event(Kind::kVanished, trial.number);
  vanished.last_step = trial.last_step;
  return vanished;
}

void Tuner::requeue_silent() {
  const double seconds = kSilentHeartbeats * study_.settings().heartbeat_seconds;
  const std::vector<Attempt> silent = storage_->silent(seconds);
  if (silent.empty()) return;
  update([&] {
    std::vector<Event> events;
    for (const Attempt& attempt : silent) {
      if (is_running(attempt)) events.push_back(lose(at(attempt.trial)));
    }
    stop_after_failures(events);
    return events;
  });
}

void Tuner::enqueue(const std::vector<Point>& points) {
  for (const Point& point : points) {
    if (!study_.space().contains(point) || !study_.space().allows(point)) {
      throw UsageError("an enqueued point is not in the space");
    }
  }
  update([&] {
    std::vector<Event> events;
    for (const Point& point : points) {
      const auto number = static_cast<int64_t>(study_.trials().size() + events.size());
      events.push_back(
          queue(number, pruner_->bracket(study_, number), sampler_->given(point, number)));
    }
    return events;
  });
}

WarmStart Tuner::take_over(const Study& earlier) {
  WarmStart taken;
  update([&] {
    taken = warm_start(study_, earlier, *pruner_);
    return taken.events;
  });
  return taken;
}

void Tuner::control(const Control& control) {
  switch (control.kind) {
    case Control::Kind::kStop: return stop(control.reason);
    case Control::Kind::kRetry: retry_failed(); return;
    case Control::Kind::kResume:
      // Counted within the transaction, so that concurrent requests are not added twice.
      return update([&] {
        return std::vector{resumed(std::max<int64_t>(0, control.wanted - study_.wanted_trials()))};
      });
  }
}

void Tuner::stop(const std::string& reason) {
  update([&]() -> std::vector<Event> {
    if (study_.is_stopped()) return {};
    Event stopped = event(Kind::kStopped, -1);
    stopped.text = reason;
    return {stopped};
  });
}

Event Tuner::resumed(int64_t more_trials) const {
  Event resumed = event(Kind::kResumed, -1);
  resumed.step = more_trials;
  return resumed;
}

void Tuner::resume(int64_t more_trials) {
  update([&] { return std::vector{resumed(more_trials)}; });
}

int64_t Tuner::retry_failed() {
  int64_t count = 0;
  update([&] {
    std::vector<Event> events;
    for (const Trial& trial : study_.trials()) {
      if (trial.state != TrialState::kFailed) continue;
      Event requeued = event(Kind::kRequeued, trial.number);
      requeued.last_step = trial.last_step;
      events.push_back(requeued);
    }
    count = static_cast<int64_t>(events.size());
    return events;
  });
  return count;
}

}  // namespace gallop::tune
