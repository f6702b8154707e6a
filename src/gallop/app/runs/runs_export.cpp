#include <cmath>
#include <functional>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/csv.h"
#include "gallop/app/runs/subcommands.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/track/log.h"
#include "gallop/track/run_summary.h"

namespace gallop::app {

namespace {

using Json = nlohmann::ordered_json;

struct Point {
  std::string run, metric;
  int64_t step = 0;
  double time = 0, value = 0;
};

void for_each_point(const fs::path& folder, const std::function<void(const Point&)>& visit) {
  Point point{.run = folder.filename().string()};
  for (const track::Record& record : track::read_log(folder / "metrics.log").current()) {
    point.step = record.step;
    point.time = record.time;
    for (const auto& [name, value] : record.values) {
      const auto metric = track::metric_name(record.kind, name);
      if (!metric) continue;
      point.metric = *metric;
      point.value = value;
      visit(point);
    }
  }
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
    for_each_point(folder, [&](const Point& point) {
      const std::string value = fmt::format("{}", point.value);
      if (format == "csv") {
        fmt::print("{}", csv_line({point.run, point.metric, std::to_string(point.step),
                                   fmt::format("{}", point.time), value}));
        return;
      }
      const Json line{{"run", point.run},
                      {"metric", point.metric},
                      {"step", point.step},
                      {"time", point.time},
                      {"value", std::isfinite(point.value) ? Json(point.value) : Json(value)}};
      fmt::print("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
    });
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
