#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/config/resolve.h"
#include "gallop/tune/pruner.h"
#include "gallop/tune/sampler.h"

namespace gallop::app {

namespace {

void print_family(const config::Catalog& catalog) {
  for (const auto& member : catalog.members()) {
    fmt::print("{}: {}  {}\n", catalog.family(), member.name, member.help);
    const auto options = member.make_options(catalog);
    const auto visit_fields = [&](config::Visitor& visitor) { options->visit_fields(visitor); };
    for (const auto& line : config::describe_fields(visit_fields, catalog.family())) {
      fmt::print("  {:<34} {}  [{}; default {}]\n", line.key, line.help, line.type, line.initial);
    }
    fmt::print("\n");
  }
}

}  // namespace

ExitCode tune_options(const std::vector<std::string>& arguments) {
  CLI::App parser(
      "List every sampler and pruner with its options.\n\n"
      "Example: gallop tune options",
      "gallop tune options");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  print_family(tune::built_in_samplers());
  print_family(tune::built_in_pruners());
  return ExitCode::kDone;
}

}  // namespace gallop::app
