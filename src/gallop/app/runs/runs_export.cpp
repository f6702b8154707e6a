#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/json_line.h"
#include "gallop/app/runs/subcommands.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/base/csv.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/config/json_numbers.h"
#include "gallop/track/points.h"
#include "gallop/track/prometheus.h"
#include "gallop/track/run_locations.h"
#include "gallop/track/tensorboard/runs.h"

namespace gallop::app {

namespace {

std::string json_of(const std::string& run, const track::Point& point) {
  const nlohmann::ordered_json line{{"run", run},
                                    {"metric", point.metric},
                                    {"step", point.step},
                                    {"time", point.time},
                                    {"value", config::number_json(point.value)}};
  return json_line(line) + "\n";
}

std::string line_of(const std::string& run, const track::Point& point) {
  return csv_line({run, point.metric, std::to_string(point.step), fmt::format("{}", point.time),
                   fmt::format("{}", point.value)});
}

void print_points(const fs::path& folder, bool as_csv) {
  const std::string run = track::run_name_of(folder);
  track::for_each_point(log_of(folder), [&](const track::Point& point) {
    std::fputs((as_csv ? line_of(run, point) : json_of(run, point)).c_str(), stdout);
  });
}

void print_for_prometheus(const std::vector<fs::path>& folders) {
  std::vector<track::RunSummary> runs;
  for (const fs::path& run : folders) runs.push_back(track::summarize_run(run));
  std::fputs(track::prometheus_text(runs).c_str(), stdout);
}

}  // namespace

ExitCode runs_export(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Print all data points of runs: run, metric, step, time (seconds since 1970) and value; or\n"
      "write TensorBoard event files.\n\n"
      "Example: gallop runs export fashion-mnist-1 > points.csv",
      "gallop runs export");
  WhichRuns which;
  which.add_to(parser, /*several=*/true);
  std::string format = "csv", folder;
  parser
      .add_option("--format", format,
                  "csv, json (one object per line), tensorboard, or prometheus (last values)")
      ->check(CLI::IsMember({"csv", "json", "tensorboard", "prometheus"}));
  parser.add_option("--to", folder, "for tensorboard: output folder, with one folder per run");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const bool to_folder = format == "tensorboard";
  if (to_folder && folder.empty()) throw UsageError("--format tensorboard requires --to FOLDER");
  if (!to_folder && !folder.empty()) throw UsageError("--to requires --format tensorboard");
  const auto folders = which.find();
  if (format == "prometheus") {
    print_for_prometheus(folders);
    return ExitCode::kDone;
  }
  if (format == "csv") fmt::print("{}", csv_line({"run", "metric", "step", "time", "value"}));
  for (const fs::path& run : folders) {
    if (to_folder) {
      const int64_t points = track::tensorboard::export_run(run, folder);
      fmt::print("{}: {} points\n", printable(track::run_name_of(run)), format_count(points));
    } else {
      print_points(run, format == "csv");
    }
  }
  if (to_folder) fmt::print("to view them: tensorboard --logdir {}\n", shell_word(folder));
  return ExitCode::kDone;
}

}  // namespace gallop::app
