#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/runs/subcommands.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/base/text.h"
#include "gallop/track/labels.h"
#include "gallop/track/run_locations.h"

namespace gallop::app {

ExitCode runs_tag(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Set or remove tags of runs.\n\n"
      "Example: gallop runs tag fashion-mnist-1 --set team=vision --set good --remove old",
      "gallop runs tag");
  WhichRuns which;
  which.add_to(parser, /*several=*/true);
  std::vector<std::string> set, removed;
  parser.add_option("--set", set, "KEY=VALUE, or a word")->take_all();
  parser.add_option("--remove", removed, "KEY")->take_all();
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  if (set.empty() && removed.empty()) throw UsageError("specify --set KEY=VALUE or --remove KEY");
  std::vector<std::pair<std::string, std::string>> tags;
  for (const std::string& text : set) tags.push_back(track::parse_tag(text));
  for (const fs::path& folder : which.find()) {
    track::change_labels(folder, [&](track::Labels& labels) {
      for (const auto& [key, value] : tags) labels.tags[key] = value;
      for (const std::string& key : removed) {
        if (labels.tags.erase(key) == 0) {
          throw UsageError(fmt::format("{} has no tag '{}'", printable(track::run_name_of(folder)),
                                       printable(key)));
        }
      }
    });
  }
  return ExitCode::kDone;
}

ExitCode runs_note(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Set or replace the note of a run.\n\n"
      "Example: gallop runs note fashion-mnist-1 --text \"with the new augmentation\"",
      "gallop runs note");
  WhichRuns which;
  which.add_to(parser, /*several=*/false);
  std::string text;
  parser.add_option("--text", text, "the note; empty removes it")->required();
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  track::change_labels(which.find().front(), [&](track::Labels& labels) { labels.note = text; });
  return ExitCode::kDone;
}

}  // namespace gallop::app
