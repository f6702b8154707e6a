#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "gallop/app/command.h"
#include "gallop/app/family_help.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/tune/registries.h"

namespace gallop::app {

ExitCode tune_options(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "List every sampler and pruner with its options.\n\n"
      "Example: gallop tune options",
      "gallop tune options");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  OptionPrinter printer;
  printer.print_members("sampler", command.tune().samplers);
  printer.print_members("pruner", command.tune().pruners);
  return ExitCode::kDone;
}

}  // namespace gallop::app
