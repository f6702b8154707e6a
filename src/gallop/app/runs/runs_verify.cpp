#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/json_line.h"
#include "gallop/app/runs/run_check.h"
#include "gallop/app/runs/subcommands.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/base/text.h"
#include "gallop/track/run_locations.h"

namespace gallop::app {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const fs::path& run, const std::vector<Finding>& findings) {
  Json json{{"run", track::run_name_of(run)}, {"same", is_same(findings)}};
  for (const Finding& one : findings) {
    json["findings"].push_back({{"of", one.of}, {"same", one.is_same}, {"text", one.text}});
  }
  return json;
}

}  // namespace

ExitCode runs_verify(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Verify the provenance of a run: whether the program, the code in the repository that it\n"
      "was started in and the content of its data are unchanged, and its own files are intact.\n"
      "Exit code 3 if something has changed.\n\n"
      "Example: gallop runs verify fashion-mnist-1",
      "gallop runs verify");
  WhichRuns which;
  which.add_to(parser, /*several=*/true);
  bool json = false;
  parser.add_flag("--json", json, "print JSON, one line per run");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const std::vector<fs::path> folders = which.find();
  bool all_same = true;
  for (const fs::path& folder : folders) {
    const auto findings = check_run(folder);
    all_same = all_same && is_same(findings);
    if (json) {
      fmt::print("{}\n", json_line(to_json(folder, findings)));
      continue;
    }
    if (folders.size() > 1) fmt::print("{}\n", printable(track::run_name_of(folder)));
    print(findings);
  }
  return all_same ? ExitCode::kDone : ExitCode::kData;
}

}  // namespace gallop::app
