#include "gallop/tune/study_text.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/clock.h"
#include "gallop/base/csv.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/json_numbers.h"
#include "gallop/config/scalar.h"
#include "gallop/plot/labels.h"
#include "gallop/tune/chosen.h"
#include "gallop/tune/target_metric.h"
#include "gallop/tune/trial_args.h"

namespace gallop::tune {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostOfResult = 24;

const std::vector<std::string> kFirstColumns = {"trial", "state"};
const std::vector<std::string> kLastColumns = {"seconds", "attempts", "worker", "message"};

// Column names must be unique, as programs access columns by name.
std::vector<std::string> csv_columns(const Study& study) {
  std::vector<std::string> columns = kFirstColumns;
  std::set<std::string> taken(kFirstColumns.begin(), kFirstColumns.end());
  taken.insert(kLastColumns.begin(), kLastColumns.end());
  const auto add = [&](std::string name, const char* prefix) {
    while (!taken.insert(name).second) name.insert(0, prefix);
    columns.push_back(std::move(name));
  };
  for (const auto& objective : study.settings().objectives) add(objective.metric, "metric.");
  for (const auto& limit : study.settings().limits) add(limit.metric, "limit.");
  for (const auto& parameter : study.space().parameters()) add(parameter.name, "parameter.");
  columns.insert(columns.end(), kLastColumns.begin(), kLastColumns.end());
  return columns;
}

double seconds_of(const Trial& trial) {
  if (trial.started == 0) return 0;
  return (trial.is_finished() ? trial.ended : seconds_since_1970()) - trial.started;
}

// Why fewer trials than requested are available; empty if that is not so.
std::string exhausted_text(const Study& study, const TuneRegistries& registries) {
  const bool is_underway = !study.running().empty() || !study.waiting().empty();
  if (is_underway || study.is_stopped() || study.has_all_trials()) return {};
  const std::string sampler = name_in(study.settings().sampler);
  // The sampler of a plug-in that is not loaded cannot be queried.
  if (!sampler.empty() && registries.samplers.find(sampler) == nullptr) return {};
  if (study.trials().empty() || !make_sampler(registries, study.settings())->is_exhausted(study)) {
    return {};
  }
  if (sampler == "grid") return "all points of the grid have been tried";
  return fmt::format("all members of the population have reached the last step of {}", sampler);
}

// The pruned trials with the best last reports, one line each, limited to a few.
std::string best_pruned_text(const Study& study) {
  constexpr size_t kShown = 5;
  std::vector<const Trial*> pruned;
  for (const Trial& trial : study.trials()) {
    const bool has_report = !trial.reports.empty() && std::isfinite(trial.reports.back().loss);
    if (trial.state == TrialState::kPruned && has_report) pruned.push_back(&trial);
  }
  std::stable_sort(pruned.begin(), pruned.end(), [](const Trial* a, const Trial* b) {
    return a->reports.back().loss < b->reports.back().loss;
  });
  if (pruned.size() > kShown) pruned.resize(kShown);
  std::string text;
  for (const Trial* trial : pruned) {
    text += fmt::format("  {} at step {}, trial {}: {}\n", values_text(study, *trial),
                        trial->reports.back().step, trial->number, point_text(study, *trial, 4));
  }
  return text;
}

}  // namespace

const Trial& trial_at(const Study& study, int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(study.trials().size())) {
    throw UsageError(fmt::format("{} has no trial {}; there are {}", study.settings().name, number,
                                 study.trials().size()));
  }
  return study.trials()[static_cast<size_t>(number)];
}

std::string name_in(const std::string& component) {
  const Json json = Json::parse(component, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json.value("name", "") : "";
}

std::vector<int64_t> best_trials(const Study& study) {
  if (study.objectives() > 1) return study.pareto_front();
  const auto best = study.best();
  return best ? std::vector{*best} : std::vector<int64_t>();
}

std::vector<double> metrics_of(const Study& study, const Trial& trial) {
  const auto& objectives = study.settings().objectives;
  std::vector<double> values;
  for (size_t i = 0; i < trial.losses.size() && i < objectives.size(); ++i) {
    values.push_back(objectives[i].signed_value(trial.losses[i]));
  }
  if (values.empty() && !trial.reports.empty()) {
    values.push_back(objectives[0].signed_value(trial.reports.back().reported));
  }
  return values;
}

std::string progress_text(const Study& study) {
  const auto of = [&](TrialState state) { return study.count(state); };
  const int64_t pruned = of(TrialState::kPruned), failed = of(TrialState::kFailed);
  std::string text = fmt::format("{} of {} trials finished", format_count(study.finished_trials()),
                                 format_count(study.wanted_trials()));
  std::string ended;
  if (pruned > 0) ended = fmt::format("{} pruned", format_count(pruned));
  if (failed > 0) {
    ended += fmt::format("{}{} failed", ended.empty() ? "" : ", ", format_count(failed));
  }
  if (!ended.empty()) text += " (" + ended + ")";
  if (of(TrialState::kRunning) > 0) {
    text += fmt::format(", {} running", format_count(of(TrialState::kRunning)));
  }
  if (of(TrialState::kWaiting) > 0) {
    text += fmt::format(", {} waiting", format_count(of(TrialState::kWaiting)));
  }
  if (!study.is_stopped()) return text;
  const std::string reason = printable(study.stop_reason());
  return text + "; stopped" + (reason.empty() ? "" : ": " + reason);
}

std::string standing_text(const Study& study, const TuneRegistries& registries) {
  const std::string exhausted = exhausted_text(study, registries);
  return progress_text(study) + (exhausted.empty() ? "" : "; " + exhausted);
}

std::string shared_text(const Study& study, size_t trials) {
  const int64_t steps = study.shared_steps();
  if (steps == 0) return {};
  const auto count = std::count_if(study.trials().begin(), study.trials().end(),
                                   [](const Trial& trial) { return trial.shared_with >= 0; });
  std::string text = fmt::format("shared     {} steps were saved in {} of {} trials\n",
                                 format_count(steps), count, study.trials().size());
  for (const Trial& trial : study.trials()) {
    const bool is_shown = static_cast<size_t>(trial.number) + trials >= study.trials().size();
    if (trial.shared_with < 0 || !is_shown) continue;
    text += fmt::format("           trial {} shares {} steps with trial {}\n", trial.number,
                        format_count(trial.shared_steps), trial.shared_with);
  }
  return text;
}

std::string values_text(const Study& study, const Trial& trial) {
  std::string text;
  const auto values = metrics_of(study, trial);
  for (size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{} {:.6g}", i > 0 ? ", " : "", study.settings().objectives[i].metric,
                        values[i]);
  }
  return text;
}

std::string result_text(const Study& study, const Trial& trial) {
  if (!trial.message.empty()) return printable(trial.message);
  std::string text = values_text(study, trial);
  std::string above;
  for (size_t i = 0; i < trial.violations.size(); ++i) {
    if (trial.violations[i] <= 0) continue;
    const Limit& limit = study.settings().limits[i];
    above += fmt::format("{}{} {:.6g}, above {:.6g}", above.empty() ? "" : "; ",
                         printable(limit.metric), limit.most + trial.violations[i], limit.most);
  }
  return above.empty() ? text : text + " (" + above + ")";
}

std::string point_text(const Study& study, const Trial& trial, int digits) {
  std::string text;
  for (const auto& [name, word] : parameter_args(study.space(), trial.point)) {
    const auto number = parse_number<double>(word);
    const bool is_rounded = number && digits > 0 && word.find('.') != std::string::npos;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name,
                        is_rounded ? fmt::format("{:.{}g}", *number, digits) : word);
  }
  return text;
}

std::string best_text(const Study& study) {
  std::string text;
  for (const int64_t number : best_trials(study)) {
    const Trial& trial = trial_at(study, number);
    text += fmt::format("{}, trial {}: {}\n", values_text(study, trial), number,
                        point_text(study, trial, 4));
  }
  return text;
}

std::string above_limits_text(const Study& study) {
  std::vector<std::string> limits;
  for (const Limit& limit : study.settings().limits) {
    limits.push_back(fmt::format("{} at most {:.6g}", printable(limit.metric), limit.most));
  }
  return fmt::format("none of {} complete trials is within the limits ({})",
                     study.count(TrialState::kComplete), join_names(limits, "and"));
}

std::string pruned_text(const Study& study) {
  const int64_t count = study.count(TrialState::kPruned);
  if (count == 0 || study.count(TrialState::kComplete) > 0) return {};
  const std::string best = best_pruned_text(study);
  if (!best.empty()) {
    return "no trial is complete; the best pruned trials, by their last report:\n" + best;
  }
  for (const Objective& objective : study.settings().objectives) {
    if (!objective.metric.starts_with(kSecondsTo)) continue;
    return fmt::format("none of {} trials has reached {}\n", format_count(count),
                       printable(objective.metric.substr(kSecondsTo.size())));
  }
  return "no trial is complete, and no pruned trial has reported a finite value\n";
}

std::string trials_table(const Study& study, size_t trials, size_t columns, size_t most) {
  const size_t all = study.trials().size();
  std::string text;
  const auto add = [&](const std::string& line) {
    text += plot::shortened(line, columns, "...") + "\n";
  };
  std::vector<std::pair<const Trial*, std::string>> shown;
  for (const Trial& trial : study.trials()) {
    const bool is_shown =
        static_cast<size_t>(trial.number) + trials >= all || trial.state == TrialState::kRunning;
    if (!is_shown) continue;
    shown.emplace_back(&trial, result_text(study, trial));
  }
  const size_t left_out = shown.size() > most ? shown.size() - most + 1 : 0;
  shown.erase(shown.begin(), shown.begin() + static_cast<ptrdiff_t>(left_out));
  size_t width = std::string_view("result").size();
  for (const auto& [trial, result] : shown) width = std::clamp(result.size(), width, kMostOfResult);
  constexpr const char* kLine = "{:>5}  {:<8}  {:>7}  {:>8}  {:<{}}  {}";
  add(fmt::format(kLine, "trial", "state", "reports", "time", "result", width, "parameters"));
  if (left_out > 0) add(fmt::format("{:>5}  {} more", "...", left_out));
  for (const auto& [trial, result] : shown) {
    add(fmt::format(kLine, trial->number, state_name(trial->state), trial->reports.size(),
                    format_duration(seconds_of(*trial)), result, width,
                    point_text(study, *trial, 4)));
  }
  return text;
}

Json trial_object(const Study& study, const Trial& trial) {
  Json json{{"trial", trial.number}, {"state", state_name(trial.state)}};
  const auto values = metrics_of(study, trial);
  for (size_t i = 0; i < values.size(); ++i) {
    json["values"][study.settings().objectives[i].metric] = config::number_json(values[i]);
  }
  json["parameters"] = Json::parse(parameters_json(study.space(), trial.point));
  for (size_t i = 0; i < trial.violations.size(); ++i) {
    const auto& limit = study.settings().limits[i];
    json["limited"][limit.metric] = config::number_json(limit.most + trial.violations[i]);
  }
  for (const auto& report : trial.reports) {
    const double value = study.settings().objectives[0].signed_value(report.reported);
    json["reports"].push_back({report.step, config::number_json(value)});
  }
  json["seconds"] = seconds_of(trial);
  json["attempts"] = trial.attempt;
  if (trial.parent >= 0) json["parent"] = trial.parent;
  if (trial.shared_with >= 0) {
    json["shared"] = {{"with", trial.shared_with}, {"steps", trial.shared_steps}};
  }
  if (trial.bracket > 0) json["bracket"] = trial.bracket;
  if (!trial.worker.empty()) json["worker"] = trial.worker;
  if (!trial.folder.empty()) json["folder"] = trial.folder;
  if (!trial.message.empty()) json["message"] = trial.message;
  return json;
}

std::string trial_json(const Study& study, const Trial& trial) {
  return trial_object(study, trial).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string study_json(const Study& study, int indent) {
  Json json = Json::parse(to_json(study.settings()));
  json["wanted_trials"] = study.wanted_trials();
  json["stopped"] = study.is_stopped();
  json["shared_steps"] = study.shared_steps();
  if (const auto best = study.best(); best && study.objectives() == 1) json["best"] = *best;
  json["pareto_front"] = study.pareto_front();
  json["trials"] = Json::array();
  for (const Trial& trial : study.trials()) json["trials"].push_back(trial_object(study, trial));
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string study_csv(const Study& study) {
  std::string text = csv_line(csv_columns(study));
  for (const Trial& trial : study.trials()) {
    std::vector<std::string> fields = {std::to_string(trial.number), state_name(trial.state)};
    const auto values = metrics_of(study, trial);
    for (size_t i = 0; i < study.objectives(); ++i) {
      fields.push_back(i < values.size() ? config::number_text(values[i]) : "");
    }
    for (size_t i = 0; i < study.settings().limits.size(); ++i) {
      const double most = study.settings().limits[i].most;
      fields.push_back(i < trial.violations.size() ? config::number_text(most + trial.violations[i])
                                                   : "");
    }
    const auto args = parameter_args(study.space(), trial.point);
    for (const auto& parameter : study.space().parameters()) {
      const auto found = std::find_if(
          args.begin(), args.end(), [&](const auto& word) { return word.first == parameter.name; });
      fields.push_back(found == args.end() ? "" : found->second);
    }
    fields.insert(fields.end(), {fmt::format("{:.3f}", seconds_of(trial)),
                                 std::to_string(trial.attempt), trial.worker, trial.message});
    text += csv_line(fields);
  }
  return text;
}

}  // namespace gallop::tune
