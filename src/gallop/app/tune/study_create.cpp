#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/tune/new_study.h"
#include "gallop/app/tune/subcommands.h"

namespace gallop::app {

ExitCode tune_create(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Create a study without running trials, for 'gallop tune ask' and 'tell'. Its sweep needs\n"
      "neither 'recipe' nor 'command'.\n\n"
      "Example: gallop tune create sweep.yaml",
      "gallop tune create");
  NewStudy wanted;
  std::string studies = "studies";
  parser.add_option("SWEEP", wanted.sweep_file, "sweep file")->required();
  parser.add_option("--name", wanted.name, "study name; by default that of the file");
  parser.add_option("--studies", studies, "folder of the studies");
  parser.add_option("--warm-start", wanted.earlier,
                    "STUDY: warm-start a new study with the trials of this one");
  parser.add_option("--store", wanted.store, "postgresql://...: database that stores the study");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  wanted.studies = studies;
  tune::Sweep sweep;
  const std::string text = read_sweep(command.registries(), wanted, sweep);
  fmt::print("{}\n", make_study(command.tune(), wanted, sweep, text).folder.string());
  return ExitCode::kDone;
}

}  // namespace gallop::app
