// optuna_export_program FILE: exports a study with every kind of parameter and state, and prints
// its expected content as JSON, for tests/parity/optuna_export.py.
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/config/json_numbers.h"
#include "gallop/tune/storage/optuna_export.h"

namespace {

using namespace gallop::tune;
using Json = nlohmann::ordered_json;
using Kind = Event::Kind;

StudySettings settings(size_t objectives) {
  StudySettings settings{
      .name = "export",
      .space =
          Space({{"lr", Interval{.low = 1e-4, .high = 1, .scale = Scale::kLog}},
                 {"share", Interval{.low = 0, .high = 0.9, .step = 0.25}},
                 {"width", Interval{.low = 1, .high = 10, .step = 2, .integer = true}},
                 {"depth",
                  Interval{.low = 1, .high = 64, .scale = Scale::kLog, .step = 1, .integer = true}},
                 {"act", Choices{{"\"relu\"", "null", "1.5", "true", "[64, 64]"}}},
                 {"slope", Interval{.low = -1, .high = 1}, Condition{.parent = 4, .choices = {0}}}},
                {}),
      .objectives = {{"accuracy", true}},
      .limits = {{"memory", 8}}};
  if (objectives == 2) settings.objectives.push_back({"seconds", false});
  return settings;
}

Study study(size_t objectives) {
  Study study(settings(objectives));
  const auto queue = [&](int64_t trial, double act) {
    study.apply({.kind = Kind::kQueued,
                 .trial = trial,
                 .point = {1.0 / 3, 0.5, 7, 12, act, act == 0 ? -0.25 : kInactive}});
  };
  const auto start = [&](int64_t trial) {
    study.apply({.kind = Kind::kStarted,
                 .trial = trial,
                 .time = 1.7e9 + static_cast<double>(trial) + 0.015625,
                 .attempt = 1,
                 .text = "host:1"});
  };
  const auto report = [&](int64_t trial, int64_t step, double loss) {
    study.apply({.kind = Kind::kReported, .trial = trial, .step = step, .losses = {loss}});
  };
  const auto finish = [&](int64_t trial, TrialState state, std::vector<double> losses) {
    const bool is_complete = state == TrialState::kComplete;
    study.apply({.kind = Kind::kFinished,
                 .trial = trial,
                 .time = 1.7e9 + 100.5,
                 .state = state,
                 .losses = std::move(losses),
                 .violations = is_complete ? std::vector<double>{-0.5} : std::vector<double>{},
                 .text = state == TrialState::kFailed ? "no \"memory\" \xc3\xa4" : ""});
  };
  for (int64_t trial = 0; trial < 5; ++trial) {
    queue(trial, static_cast<double>(trial));
    if (trial < 4) start(trial);
  }
  if (objectives == 1) {
    report(0, 1, NAN);
    report(0, 2, INFINITY);
    report(0, 30, -0.75);
    report(1, 4, -0.5);
    finish(1, TrialState::kPruned, {});
  }
  finish(0, TrialState::kComplete,
         objectives == 1 ? std::vector{-0.875} : std::vector{-0.875, 3.0});
  finish(2, TrialState::kFailed, {});
  return study;
}

Json expected(const Study& study) {
  const StudySettings& settings = study.settings();
  Json trials = Json::array();
  for (const Trial& trial : study.trials()) {
    Json params = Json::object(), reports = Json::object(), values = Json::array();
    for (size_t i = 0; i < trial.point.size(); ++i) {
      if (std::isnan(trial.point[i])) continue;
      params[study.space()[i].name] = Json::parse(study.space().value_text(i, trial.point[i]));
    }
    for (const Report& report : trial.reports) {
      reports[std::to_string(report.step)] =
          gallop::config::number_json(settings.objectives[0].signed_value(report.loss));
    }
    for (size_t i = 0; i < trial.losses.size(); ++i) {
      values.push_back(settings.objectives[i].signed_value(trial.losses[i]));
    }
    trials.push_back({{"number", trial.number},
                      {"state", state_name(trial.state)},
                      {"params", std::move(params)},
                      {"values", std::move(values)},
                      {"reports", std::move(reports)},
                      {"violations", trial.violations},
                      {"started", trial.started},
                      {"ended", trial.ended},
                      {"message", trial.message},
                      {"worker", trial.worker}});
  }
  return {{"name", settings.name}, {"trials", std::move(trials)}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: optuna_export_program FILE OBJECTIVES\n");
    return static_cast<int>(gallop::ExitCode::kUsage);
  }
  try {
    const Study exported = study(std::stoul(argv[2]));
    export_to_optuna(exported, argv[1]);
    fmt::print("{}\n", expected(exported).dump());
    return 0;
  } catch (const gallop::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
