#include "gallop/tune/study.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/tune/pareto/pareto.h"

namespace gallop::tune {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

[[noreturn]] void fail(const Event& event, const std::string& why) {
  throw DataError(fmt::format("the history of the study is damaged: {}: {}", to_json(event), why));
}

void check(const Event& event, bool is_right, const char* why) {
  if (!is_right) fail(event, why);
}

}  // namespace

void check_one_objective(const StudySettings& settings, const char* who) {
  if (settings.objectives.size() == 1) return;
  throw UsageError(fmt::format("{}: supports a single objective; the study has {}", who,
                               settings.objectives.size()));
}

std::string to_json(const StudySettings& settings) {
  Json objectives = Json::array(), limits = Json::array();
  for (const Objective& objective : settings.objectives) {
    objectives.push_back({{"metric", objective.metric}, {"maximize", objective.maximize}});
    if (objective.target) objectives.back()["target"] = *objective.target;
  }
  for (const Limit& limit : settings.limits) {
    limits.push_back({{"metric", limit.metric}, {"most", limit.most}});
  }
  return Json{{"version", kVersion},
              {"name", settings.name},
              {"seed", settings.seed},
              {"space", Json::parse(settings.space.to_json())},
              {"objectives", std::move(objectives)},
              {"limits", std::move(limits)},
              {"sampler", Json::parse(settings.sampler)},
              {"pruner", Json::parse(settings.pruner)},
              {"run", Json::parse(settings.run)},
              {"trials", settings.trials},
              {"attempts", settings.attempts},
              {"failures", settings.failures},
              {"heartbeat_seconds", settings.heartbeat_seconds}}
      .dump();
}

StudySettings parse_settings(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    const int version = json.at("version");
    if (version > kVersion) {
      throw DataError(
          fmt::format("the study was created by a newer version of Gallop (format {}; this version "
                      "supports up to {})",
                      version, kVersion));
    }
    // Member by member: g++ 12 destroys members twice if an initializer in braces throws.
    StudySettings settings;
    settings.name = json.at("name");
    settings.seed = json.at("seed");
    settings.space = Space::from_json(json.at("space").dump());
    settings.sampler = json.at("sampler").dump();
    settings.pruner = json.at("pruner").dump();
    settings.run = json.at("run").dump();
    settings.trials = json.at("trials");
    settings.attempts = json.at("attempts");
    settings.failures = json.at("failures");
    settings.heartbeat_seconds = json.at("heartbeat_seconds");
    for (const Json& objective : json.at("objectives")) {
      settings.objectives.push_back({objective.at("metric"), objective.at("maximize")});
      if (objective.contains("target")) {
        settings.objectives.back().target = objective.at("target").get<double>();
      }
    }
    if (settings.objectives.empty()) throw DataError("not a study: it has no objective");
    for (const Json& limit : json.at("limits")) {
      settings.limits.push_back({limit.at("metric"), limit.at("most")});
    }
    return settings;
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("not a study: {}", error.what()));
  }
}

int64_t Study::count(TrialState state) const {
  switch (state) {
    case TrialState::kWaiting: return static_cast<int64_t>(waiting_.size());
    case TrialState::kRunning: return static_cast<int64_t>(running_.size());
    default: break;
  }
  return std::count_if(trials_.begin(), trials_.end(),
                       [state](const Trial& trial) { return trial.state == state; });
}

int64_t Study::finished_trials() const {
  return static_cast<int64_t>(trials_.size() - waiting_.size() - running_.size());
}

int64_t Study::shared_steps() const {
  return std::accumulate(trials_.begin(), trials_.end(), int64_t{0},
                         [](int64_t sum, const Trial& trial) { return sum + trial.shared_steps; });
}

Trial& Study::at(int64_t number) { return trials_[static_cast<size_t>(number)]; }

void Study::apply(const Event& event) {
  using Kind = Event::Kind;
  const bool is_new = event.kind == Kind::kQueued;
  const bool is_of_study = event.kind == Kind::kStopped || event.kind == Kind::kResumed;
  const auto known = static_cast<int64_t>(trials_.size());
  if (!is_of_study) {
    check(event, is_new ? event.trial == known : event.trial >= 0 && event.trial < known,
          "unknown trial");
  }
  switch (event.kind) {
    case Kind::kQueued: return queue(event);
    case Kind::kStarted: return start(event);
    case Kind::kPlaced: at(event.trial).folder = event.folder; return;
    case Kind::kReported: return report(event);
    case Kind::kFinished: return finish(event);
    case Kind::kShared: return share(event);
    case Kind::kVanished:
    case Kind::kRequeued: return requeue(event);
    case Kind::kStopped:
      stopped_ = true;
      stop_reason_ = event.text;
      return;
    case Kind::kResumed:
      stopped_ = false;
      stop_reason_.clear();
      failures_in_a_row_ = 0;
      more_trials_ += event.step;
      if (event.text == Event::kTakenOver) taken_over_ += event.step;
      return;
  }
}

void Study::queue(const Event& event) {
  check(event, space().contains(event.point), "its point is not in the space");
  check(event, event.parent < event.trial, "its parent comes later");
  trials_.push_back({.number = event.trial,
                     .bracket = event.bracket,
                     .point = event.point,
                     .parent = event.parent,
                     .member = event.member,
                     .last_step = event.last_step,
                     .known_ends = static_cast<int64_t>(finished_.size())});
  waiting_.insert(event.trial);
}

void Study::start(const Event& event) {
  Trial& trial = at(event.trial);
  check(event, trial.state == TrialState::kWaiting, "it is not waiting");
  check(event, event.attempt == trial.attempt + 1, "its attempts are not in order");
  trial.state = TrialState::kRunning;
  trial.attempt = event.attempt;
  trial.worker = event.text;
  if (trial.started == 0) trial.started = event.time;
  waiting_.erase(event.trial);
  running_.insert(event.trial);
}

void Study::report(const Event& event) {
  Trial& trial = at(event.trial);
  check(event, trial.state == TrialState::kRunning, "it is not running");
  check(event, event.losses.size() == 1, "one loss is required");
  // A trial that is resumed from a checkpoint repeats the reports after it.
  const bool rewinds = !trial.reports.empty() && trial.reports.back().step >= event.step;
  while (!trial.reports.empty() && trial.reports.back().step >= event.step) {
    trial.reports.pop_back();
  }
  if (rewinds) ++trial.rewinds;
  trial.reports.push_back({event.step, event.losses[0]});
}

void Study::finish(const Event& event) {
  Trial& trial = at(event.trial);
  check(event, trial.state == TrialState::kRunning, "it is not running");
  check(event, event.state >= TrialState::kComplete, "this is not a final state");
  if (event.state == TrialState::kComplete) {
    check(event, event.losses.size() == objectives(), "not one loss per objective");
  } else {
    check(event, event.losses.empty(), "it is not complete");
  }
  const bool has_limits = event.state == TrialState::kComplete || !event.violations.empty();
  check(event, !has_limits || event.violations.size() == settings_.limits.size(),
        "not one violation per limit");
  trial.state = event.state;
  trial.losses = event.losses;
  trial.violations = event.violations;
  trial.message = event.text;
  trial.ended = event.time;
  trial.last_end = static_cast<int64_t>(finished_.size());
  running_.erase(event.trial);
  finished_.push_back(event.trial);
  failures_in_a_row_ = event.state == TrialState::kFailed ? failures_in_a_row_ + 1 : 0;
  weigh(trial);
}

void Study::share(const Event& event) {
  const auto known = static_cast<int64_t>(trials_.size());
  check(event, event.parent >= 0 && event.parent < known && event.parent != event.trial,
        "the other trial does not exist");
  check(event, event.step > 0, "no steps are shared");
  at(event.trial).shared_with = event.parent;
  at(event.trial).shared_steps = event.step;
}

void Study::requeue(const Event& event) {
  Trial& trial = at(event.trial);
  check(event, trial.state != TrialState::kWaiting, "it is already waiting");
  if (event.kind == Event::Kind::kVanished) {
    check(event, trial.state == TrialState::kRunning, "it is not running");
    ++trial.vanished;
  }
  // Retrying a failed trial resets its attempts.
  if (trial.state == TrialState::kFailed) trial.vanished = 0;
  trial.state = TrialState::kWaiting;
  trial.last_step = event.last_step;
  trial.losses.clear();
  trial.violations.clear();
  trial.message.clear();
  running_.erase(event.trial);
  waiting_.insert(event.trial);
  requeued_.push_back(event.trial);
  if (best_ != event.trial) return;
  best_.reset();
  for (const Trial& other : trials_) weigh(other);
}

void Study::weigh(const Trial& trial) {
  if (trial.state != TrialState::kComplete || !is_feasible(trial)) return;
  const double loss = trial.losses[0];
  if (std::isnan(loss)) return;
  const double least = best_ ? at(*best_).losses[0] : loss;
  if (!best_ || loss < least || (loss == least && trial.number < *best_)) best_ = trial.number;
}

std::vector<int64_t> Study::pareto_front() const {
  LossRows losses;
  std::vector<int64_t> numbers;
  for (const Trial& trial : trials_) {
    if (trial.state != TrialState::kComplete || !is_feasible(trial)) continue;
    const bool has_nan = std::any_of(trial.losses.begin(), trial.losses.end(),
                                     [](double loss) { return std::isnan(loss); });
    if (has_nan) continue;
    losses.push_back(trial.losses);
    numbers.push_back(trial.number);
  }
  std::vector<int64_t> front;
  for (const size_t index : nondominated(losses)) front.push_back(numbers[index]);
  return front;
}

bool Study::has_reached_targets() const {
  return std::any_of(trials_.begin(), trials_.end(), [this](const Trial& trial) {
    return trial.state == TrialState::kComplete && is_feasible(trial) &&
           reach_targets(settings_.objectives, trial.losses);
  });
}

bool reach_targets(const std::vector<Objective>& objectives, const std::vector<double>& losses) {
  bool has_target = false;
  for (size_t i = 0; i < objectives.size(); ++i) {
    if (!objectives[i].target) continue;
    if (i >= losses.size() || !objectives[i].is_reached_by(losses[i])) return false;
    has_target = true;
  }
  return has_target;
}

bool is_feasible(const Trial& trial) {
  return std::all_of(trial.violations.begin(), trial.violations.end(),
                     [](double violation) { return violation <= 0; });
}

}  // namespace gallop::tune
