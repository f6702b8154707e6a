#include <algorithm>
#include <set>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/runs/subcommands.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/app/terminal.h"
#include "gallop/base/defined_text.h"
#include "gallop/base/text.h"
#include "gallop/plot/labels.h"
#include "gallop/track/points.h"
#include "gallop/track/run_locations.h"
#include "gallop/track/run_summary.h"

namespace gallop::app {

namespace {

using track::RunSummary;

constexpr size_t kCellLetters = 24;

void print_line(const std::string& title, const std::vector<std::string>& cells) {
  std::string line = fmt::format("{:<30}", title);
  for (const std::string& text : cells)
    line += fmt::format("  {:>{}}", plot::shortened(text, kCellLetters, "..."), kCellLetters);
  fmt::print("{}\n", line);
}

// The values of each name that differ between the runs.
template <typename TextOf>
void print_differences(const std::set<std::string>& names, const std::vector<RunSummary>& runs,
                       const TextOf& text_of) {
  for (const std::string& name : names) {
    std::vector<std::string> cells;
    for (const RunSummary& run : runs) cells.push_back(text_of(run, name));
    const bool differ = std::any_of(cells.begin(), cells.end(),
                                    [&](const std::string& one) { return one != cells.front(); });
    if (differ) print_line(printable(name), cells);
  }
}

plot::Series series_of(const fs::path& folder, const std::string& metric) {
  plot::Series series{.name = printable(track::run_name_of(folder))};
  track::for_each_point(log_of(folder), [&](const track::Point& point) {
    if (point.metric != metric) return;
    series.x.push_back(static_cast<double>(point.step));
    series.y.push_back(point.value);
  });
  return series;
}

}  // namespace

ExitCode runs_compare(const CommandContext& /*command*/,
                      const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Compare runs: differing options and last metrics, and the curves of a metric.\n\n"
      "Example: gallop runs compare fashion-mnist-1 fashion-mnist-2 --metric train.loss",
      "gallop runs compare");
  WhichRuns which;
  which.add_to(parser, /*several=*/true);
  std::string metric;
  parser.add_option("--metric", metric, "metric to plot; by default accuracy or loss");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const std::vector<fs::path> folders = which.find();
  if (folders.size() < 2) throw UsageError("at least two runs are required");
  std::vector<RunSummary> runs;
  std::vector<std::string> titles;
  std::set<std::string> params, metrics;
  for (const fs::path& folder : folders) {
    const RunSummary& run = runs.emplace_back(track::summarize_run(folder));
    titles.push_back(run.name);
    for (const auto& [name, text] : run.params) params.insert(name);
    for (const auto& [name, summary] : run.metrics) metrics.insert(name);
  }
  if (metric.empty()) metric = metrics.contains("accuracy") ? "accuracy" : "loss";
  if (!metrics.contains(metric) && parser.count("--metric") > 0) {
    const std::string nearest = nearest_name(metric, {metrics.begin(), metrics.end()});
    throw UsageError(fmt::format("none of these runs has the metric '{}'{}", printable(metric),
                                 nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
  }
  print_line("", titles);
  print_differences(params, runs, [](const RunSummary& run, const std::string& name) {
    const auto found = run.params.find(name);
    return found != run.params.end() ? found->second : std::string("-");
  });
  print_differences(metrics, runs, [](const RunSummary& run, const std::string& name) {
    const auto found = run.metrics.find(name);
    return found != run.metrics.end() ? defined_text(found->second.last, "{:.5g}")
                                      : std::string("-");
  });
  if (!metrics.contains(metric)) return ExitCode::kDone;
  plot::XyPlot plot{.title = printable(metric), .x = {.label = "step"}, .y = {}, .series = {}};
  for (const fs::path& folder : folders) {
    plot::Series series = series_of(folder, metric);
    if (!series.x.empty()) plot.series.push_back(std::move(series));
  }
  fmt::print("\n");
  print_plot(plot);
  return ExitCode::kDone;
}

}  // namespace gallop::app
