#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/runs/run_table.h"
#include "gallop/app/runs/subcommands.h"
#include "gallop/app/terminal.h"
#include "gallop/base/text.h"

namespace gallop::app {

ExitCode runs_list(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "List runs, the newest last.\n\n"
      "Example: gallop runs list --filter \"metrics.accuracy > 0.9 and params.optimizer.lr < 0.1\" "
      "--sort metrics.accuracy\n\n"
      "Columns, and names in formulas, are metrics.NAME (the last value), params.NAME, tags.NAME,\n"
      "name, state, created, seconds and steps.",
      "gallop runs list");
  TableConfig config;
  std::string runs = "runs", studies, format = "text";
  bool has_names = false;
  parser.add_option("--filter", config.filter, "show only runs that satisfy this formula");
  parser.add_option("--sort", config.sort, "column to sort by; created by default");
  parser.add_flag("--descending", config.descending, "sort in descending order");
  parser.add_option("--columns", config.columns, "additional columns, separated by commas")
      ->delimiter(',');
  parser
      .add_option("-n,--last", config.most,
                  "show only the last COUNT runs; runs without a value in the sorted column are at "
                  "the end, but are omitted first")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  parser.add_option("--format", format, "text, csv or json")
      ->check(CLI::IsMember({"text", "csv", "json"}));
  parser.add_flag("--names", has_names, "list the available columns only");
  parser.add_option("--runs", runs, "folder of the runs");
  parser.add_option(
      "--studies", studies,
      "FOLDER: include the runs of its sweeps, as SWEEP/0007, each with the tag sweep");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const track::RunIndex index({.runs = runs, .studies = studies});
  if (has_names) {
    for (const auto& name : index.metric_names()) fmt::print("metrics.{}\n", printable(name));
    for (const auto& name : index.param_names()) fmt::print("params.{}\n", printable(name));
    for (const auto& name : index.tag_names()) fmt::print("tags.{}\n", printable(name));
    return ExitCode::kDone;
  }
  if (config.columns.empty()) config.columns = usual_columns(index);
  const RunTable table = make_table(index, config);
  if (format != "text") {
    fmt::print("{}", format == "csv" ? to_csv(table) : to_json(table));
    return ExitCode::kDone;
  }
  if (table.all == 0) {
    fmt::print("no runs in {} yet; to train one: gallop train fashion-mnist\n", printable(runs));
    return ExitCode::kDone;
  }
  // Machine-readable output is not truncated.
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  fmt::print("{}", to_text(table, is_terminal ? static_cast<size_t>(terminal_columns()) : 0));
  if (table.chosen < table.all || static_cast<int64_t>(table.cells.size()) < table.chosen) {
    fmt::print("{} of {} runs\n", format_count(static_cast<int64_t>(table.cells.size())),
               format_count(table.all));
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
