#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/plot/plot.h"
#include "gallop/tune/plots/study_plots.h"
#include "gallop/tune/study_text.h"
#include "gallop/tune/trial_args.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/query.h"

namespace gallop::ui::api {

namespace {

using tune::name_in;
using tune::Study;
using tune::Trial;
using tune::TrialState;

std::shared_ptr<const Study> find_sweep(Context& context, const Query& query) {
  const std::string name = query.needed("name");
  try {
    return context.sweeps.study(name);
  } catch (const UsageError& error) {
    throw Refusal(404, error.what());
  }
}

const char* state_of(const Study& study) {
  if (!study.running().empty()) return "running";
  if (study.has_all_trials()) return "finished";
  return study.is_stopped() ? "stopped" : "waiting";
}

Json numbers_of(const Study& study, const Trial& trial) {
  Json values = Json::array();
  for (const double value : tune::metrics_of(study, trial)) values.push_back(number_json(value));
  return values;
}

// The entry of a sweep in the list of sweeps.
Json summary_of(const Study& study) {
  Json objectives = Json::array(), best = Json::array();
  for (const auto& objective : study.settings().objectives) {
    objectives.push_back({{"metric", objective.metric}, {"maximize", objective.maximize}});
  }
  for (const int64_t number : best_trials(study)) {
    best.push_back({{"trial", number}, {"values", numbers_of(study, trial_at(study, number))}});
  }
  double began = 0;
  for (const Trial& trial : study.trials()) {
    if (trial.started > 0 && (began == 0 || trial.started < began)) began = trial.started;
  }
  return {{"name", study.settings().name},
          {"state", state_of(study)},
          {"created", began},
          {"wanted", study.wanted_trials()},
          {"complete", study.count(TrialState::kComplete)},
          {"pruned", study.count(TrialState::kPruned)},
          {"failed", study.count(TrialState::kFailed)},
          {"running", study.count(TrialState::kRunning)},
          {"waiting", study.count(TrialState::kWaiting)},
          {"objectives", std::move(objectives)},
          {"best", std::move(best)},
          {"sampler", name_in(study.settings().sampler)},
          {"pruner", name_in(study.settings().pruner)}};
}

// The runs of the table that are trials of a sweep.
std::set<std::string> runs_of(Context& context, const std::string& sweep) {
  return context.runs.with_index([&](const track::RunIndex& index) {
    std::set<std::string> runs;
    for (const auto& row : index.rows()) {
      if (track::sweep_of(row.name) == sweep) runs.insert(row.name);
    }
    return runs;
  });
}

Json trial_json(const Study& study, const Trial& trial, const std::set<std::string>& runs) {
  Json json = tune::trial_object(study, trial);
  // Only their number, as all reports may be large; plots show them.
  json["reports"] = trial.reports.size();
  json["last_step"] = trial.reports.empty() ? 0 : trial.reports.back().step;
  json["values"] = numbers_of(study, trial);
  json.erase("folder");
  const std::string run =
      fmt::format("{}/{}", study.settings().name, fs::path(trial.folder).filename().string());
  if (runs.contains(run)) json["run"] = run;
  return json;
}

Json plots_json(const Study& study) {
  Json plots = Json::array();
  for (const auto& kind : tune::plot_kinds()) {
    if (!tune::why_not(study, kind, {}).empty()) continue;
    plots.push_back({{"kind", kind.name}, {"summary", kind.summary}});
  }
  return plots;
}

}  // namespace

http::Response sweeps(Context& context, const http::Request& /*request*/) {
  Json list = Json::array();
  for (const std::string& name : context.sweeps.names()) {
    try {
      list.push_back(summary_of(*context.sweeps.study(name)));
      list.back()["trouble"] = "";
    } catch (const Error& error) {
      list.push_back({{"name", name}, {"state", "unreadable"}, {"trouble", error.what()}});
    }
  }
  return json_response({{"sweeps", std::move(list)}});
}

http::Response sweep(Context& context, const http::Request& request) {
  const auto study = find_sweep(context, Query(request));
  Json json = summary_of(*study);
  json["progress"] = progress_text(*study);
  json["seed"] = study->seed();
  for (Json& best : json["best"]) {
    const Trial& trial = trial_at(*study, best["trial"]);
    best["command"] = line_to_repeat(*study, trial);
  }
  json["parameters"] = Json::array();
  for (const auto& parameter : study->space().parameters()) {
    json["parameters"].push_back(parameter.name);
  }
  json["plots"] = plots_json(*study);
  json["trials"] = Json::array();
  const auto runs = runs_of(context, study->settings().name);
  json["runs"] = runs.size();
  for (const Trial& trial : study->trials()) {
    json["trials"].push_back(trial_json(*study, trial, runs));
  }
  return json_response(json);
}

http::Response sweep_plot(Context& context, const http::Request& request) {
  const Query query(request);
  const auto study = find_sweep(context, query);
  const std::string wanted = query.needed("kind");
  const auto& kinds = tune::plot_kinds();
  const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                 [&](const tune::PlotKind& one) { return one.name == wanted; });
  if (kind == kinds.end()) {
    throw Refusal(404, fmt::format("plot '{}' does not exist", printable(wanted)));
  }
  plot::Page page = tune::study_page(*study, {&*kind}, {});
  page.title.clear();  // The page shows the title.
  return {.type = "image/svg+xml", .body = plot::to_svg(page)};
}

}  // namespace gallop::ui::api
