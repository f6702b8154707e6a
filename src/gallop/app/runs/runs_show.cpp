#include <cmath>
#include <optional>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/runs/run_table.h"
#include "gallop/app/runs/subcommands.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/base/defined_text.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/config/json_numbers.h"
#include "gallop/track/cross_validation.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/run_summary.h"

namespace gallop::app {

namespace {

using Json = nlohmann::ordered_json;
using track::RunSummary;

Json json_of(const RunSummary& run, const std::optional<track::CrossValidation>& folds) {
  Json json{{"name", run.name},         {"state", track::state_name(run.state)},
            {"created", run.created},   {"seconds", run.seconds},
            {"steps", run.steps},       {"tags", run.labels.tags},
            {"note", run.labels.note},  {"params", run.params},
            {"metrics", Json::object()}};
  for (const auto& [name, metric] : run.metrics) {
    json["metrics"][name] = {{"last", config::number_json(metric.last)},
                             {"last_step", metric.last_step},
                             {"min", config::number_json(metric.least)},
                             {"min_step", metric.least_step},
                             {"max", config::number_json(metric.most)},
                             {"max_step", metric.most_step},
                             {"points", metric.count}};
  }
  if (folds) {
    json["folds"] = {{"of", folds->folds}, {"runs", folds->runs}, {"metrics", Json::object()}};
    for (const auto& [name, metric] : folds->metrics) {
      json["folds"]["metrics"][name] = {{"mean", config::number_json(metric.mean)},
                                        {"std", config::number_json(metric.deviation)}};
    }
  }
  if (!run.end.empty()) json["end"] = run.end;
  if (!run.trouble.empty()) json["trouble"] = run.trouble;
  return json;
}

void print_command(const fs::path& folder) {
  try {
    const track::RunInfo info = track::RunFolder::read_info(folder);
    if (info.command_line.empty()) return;  // Imported from another program.
    fmt::print("command    {}\n", printable(shell_line(info.command_line)));
    fmt::print("program    gallop {}\n", printable(info.version));
    fmt::print("machine    {}, {} cores of {}\n", printable(info.hardware.host),
               info.hardware.cores, printable(info.hardware.cpu_model));
  } catch (const Error& error) {
    fmt::print("trouble    {}\n", printable(error.what()));
  }
}

void print(const fs::path& folder, const RunSummary& run,
           const std::optional<track::CrossValidation>& folds) {
  fmt::print("run        {}\n", printable(run.name));
  fmt::print("state      {} after {} steps\n", track::state_name(run.state),
             format_count(run.steps));
  if (!run.end.empty()) fmt::print("ended      {}\n", printable(run.end));
  fmt::print("created    {}, {} long\n", local_time(run.created), format_duration(run.seconds));
  print_command(folder);
  for (const auto& [key, value] : run.labels.tags) {
    fmt::print("tag        {}{}{}\n", printable(key), value.empty() ? "" : "=", printable(value));
  }
  if (!run.labels.note.empty()) fmt::print("note       {}\n", printable(run.labels.note));
  if (!run.trouble.empty()) fmt::print("trouble    {}\n", printable(run.trouble));
  if (!run.metrics.empty()) {
    fmt::print("\n{:<28}{:>12}{:>12}  {:<9}{:>12}  {:<9}\n", "metric", "last", "min", "at step",
               "max", "at step");
  }
  for (const auto& [name, metric] : run.metrics) {
    // Without finite points there is neither a minimum nor a maximum.
    const bool has_ends = std::isfinite(metric.least);
    const auto number = [&](double value) {
      return has_ends ? defined_text(value, "{:.5g}") : "-";
    };
    const auto step = [&](int64_t at) { return has_ends ? fmt::format("{}", at) : "-"; };
    fmt::print("{:<28}{:>12}{:>12}  {:<9}{:>12}  {:<9}\n", printable(name),
               defined_text(metric.last, "{:.5g}"), number(metric.least), step(metric.least_step),
               number(metric.most), step(metric.most_step));
  }
  if (folds) {
    fmt::print("\n{} of {} folds: {}\n", folds->runs.size(), folds->folds,
               printable(join_names(folds->runs, "and")));
    fmt::print("mean and standard deviation: {}\n", track::describe(folds->metrics));
  }
  fmt::print("\nits recipe: {}\n", printable((folder / "recipe.yaml").string()));
  const fs::path origins = folder / "origins.yaml";
  if (fs::exists(origins)) {
    fmt::print("where each value comes from: {}\n", printable(origins.string()));
  }
}

}  // namespace

ExitCode runs_show(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Show a run: its provenance, status and metrics.\n\n"
      "Example: gallop runs show fashion-mnist-1",
      "gallop runs show");
  WhichRuns which;
  which.add_to(parser, /*several=*/false);
  bool json = false;
  parser.add_flag("--json", json, "print JSON, including all options of the recipe");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const fs::path folder = which.find().front();
  const RunSummary run = track::summarize_run(folder);
  const auto folds =
      run.state == track::RunState::kUnreadable ? std::nullopt : track::cross_validation_of(folder);
  if (json) {
    fmt::print("{}\n", json_of(run, folds).dump(1, ' ', false, Json::error_handler_t::replace));
  } else {
    print(folder, run, folds);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
