#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/csv.h"
#include "gallop/app/runs/subcommands.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/config/json_numbers.h"
#include "gallop/track/points.h"

namespace gallop::app {

namespace {

std::string json_line(const std::string& run, const track::Point& point) {
  const nlohmann::ordered_json line{{"run", run},
                                    {"metric", point.metric},
                                    {"step", point.step},
                                    {"time", point.time},
                                    {"value", config::number_json(point.value)}};
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string line_of(const std::string& run, const track::Point& point) {
  return csv_line({run, point.metric, std::to_string(point.step), fmt::format("{}", point.time),
                   fmt::format("{}", point.value)});
}

}  // namespace

ExitCode runs_export(const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Print every point of runs: run, metric, step, time (seconds since 1970) and value.\n\n"
      "Example: gallop runs export fashion-mnist-1 > points.csv",
      "gallop runs export");
  WhichRuns which;
  which.add_to(parser, /*several=*/true);
  std::string format = "csv";
  parser.add_option("--format", format, "csv, or json: an object a line")
      ->check(CLI::IsMember({"csv", "json"}));
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const auto folders = which.find();
  if (format == "csv") fmt::print("{}", csv_line({"run", "metric", "step", "time", "value"}));
  for (const fs::path& folder : folders) {
    const std::string run = folder.filename().string();
    track::for_each_point(track::read_log(folder / "metrics.log"), [&](const track::Point& point) {
      std::fputs((format == "csv" ? line_of(run, point) : json_line(run, point)).c_str(), stdout);
    });
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
