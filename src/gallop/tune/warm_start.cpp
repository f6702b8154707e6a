#include "gallop/tune/warm_start.h"

#include <cmath>
#include <map>
#include <string>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::tune {

namespace {

using Kind = Event::Kind;

/// Where a metric is found in the earlier study.
struct Source {
  bool is_objective;
  size_t index;
};

std::map<std::string, Source> sources_of(const StudySettings& earlier) {
  std::map<std::string, Source> sources;
  for (size_t i = 0; i < earlier.limits.size(); ++i) sources[earlier.limits[i].metric] = {false, i};
  for (size_t i = 0; i < earlier.objectives.size(); ++i) {
    sources[earlier.objectives[i].metric] = {true, i};
  }
  return sources;
}

class Import {
 public:
  Import(const Study& study, const Study& earlier)
      : study_(study), earlier_(earlier), sources_(sources_of(earlier.settings())) {
    const StudySettings& settings = study.settings();
    for (const Objective& objective : settings.objectives) check(objective.metric);
    for (const Limit& limit : settings.limits) check(limit.metric);
    has_reports_ = settings.objectives[0].metric == earlier.settings().objectives[0].metric;
  }

  /// Whether such a trial can be taken over, regardless of its point.
  bool takes(const Trial& trial) const {
    if (trial.parent >= 0 || trial.member >= 0) return false;
    return trial.state == TrialState::kComplete ||
           (trial.state == TrialState::kPruned && has_reports_);
  }

  std::optional<Point> point(const Trial& trial) const {
    const Space &from = earlier_.space(), &to = study_.space();
    Point point(to.size(), kInactive);
    for (size_t i = 0; i < from.size(); ++i) {
      if (std::isnan(trial.point[i])) continue;
      const auto index = to.find(from[i].name);
      if (!index) return std::nullopt;
      const auto value = to.parse_value(*index, from.value_text(i, trial.point[i]));
      if (!value) return std::nullopt;
      point[*index] = *value;
    }
    if (!to.contains(point) || !to.allows(point)) return std::nullopt;
    return point;
  }

  std::vector<double> losses(const Trial& trial) const {
    std::vector<double> losses;
    for (const Objective& objective : study_.settings().objectives) {
      losses.push_back(objective.signed_value(metric(trial, objective.metric)));
    }
    return losses;
  }
  std::vector<double> violations(const Trial& trial) const {
    std::vector<double> violations;
    for (const Limit& limit : study_.settings().limits) {
      violations.push_back(metric(trial, limit.metric) - limit.most);
    }
    return violations;
  }
  std::vector<Report> reports(const Trial& trial) const {
    if (!has_reports_) return {};
    std::vector<Report> reports;
    for (const Report& report : trial.reports) {
      const double value = earlier_.settings().objectives[0].signed_value(report.reported);
      reports.push_back({report.step, study_.settings().objectives[0].signed_value(value)});
    }
    return reports;
  }

 private:
  void check(const std::string& metric) const {
    if (sources_.count(metric) > 0) return;
    throw UsageError(fmt::format("the study '{}' has no metric {}",
                                 printable(earlier_.settings().name), printable(metric)));
  }

  double metric(const Trial& trial, const std::string& name) const {
    const auto [is_objective, index] = sources_.at(name);
    if (!is_objective) return trial.violations[index] + earlier_.settings().limits[index].most;
    return earlier_.settings().objectives[index].signed_value(trial.losses[index]);
  }

  const Study& study_;
  const Study& earlier_;
  std::map<std::string, Source> sources_;
  bool has_reports_;
};

}  // namespace

WarmStart warm_start(const Study& study, const Study& earlier, const Pruner& pruner) {
  const Import import(study, earlier);
  WarmStart warm;
  auto& events = warm.events;
  for (const Trial& trial : earlier.trials()) {
    if (!import.takes(trial)) continue;
    auto point = import.point(trial);
    if (!point) {
      ++warm.outside;
      continue;
    }
    const auto number = static_cast<int64_t>(study.trials().size()) + warm.taken++;
    events.push_back({.kind = Kind::kQueued,
                      .trial = number,
                      .time = trial.started,
                      .bracket = pruner.bracket(study, number),
                      .point = *std::move(point)});
    events.push_back({.kind = Kind::kStarted,
                      .trial = number,
                      .time = trial.started,
                      .attempt = 1,
                      .text = fmt::format("{} {}", earlier.settings().name, trial.number)});
    for (const Report& report : import.reports(trial)) {
      events.push_back({.kind = Kind::kReported,
                        .trial = number,
                        .time = trial.ended,
                        .step = report.step,
                        .losses = {report.reported}});
    }
    Event ended{
        .kind = Kind::kFinished, .trial = number, .time = trial.ended, .state = trial.state};
    if (trial.state == TrialState::kComplete) {
      ended.losses = import.losses(trial);
      ended.violations = import.violations(trial);
    }
    events.push_back(std::move(ended));
  }
  if (warm.taken > 0) {
    events.push_back({.kind = Kind::kResumed, .step = warm.taken, .text = Event::kTakenOver});
  }
  return warm;
}

}  // namespace gallop::tune
