#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/json_line.h"
#include "gallop/app/machine.h"
#include "gallop/app/recipe.h"
#include "gallop/app/recipe_components.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_module.h"
#include "gallop/data/report.h"

namespace gallop::app {

namespace {

void show_machine(bool json) {
  const MachineReport report = describe_machine();
  if (json) {
    nlohmann::ordered_json object;
    for (const auto& [name, value] : report) object[name] = value;
    fmt::print("{}\n", json_line(object));
    return;
  }
  for (const auto& [name, value] : report) fmt::print("{:<18} {}\n", name, value);
}

void show_data(const ResolvedRecipe& recipe, bool json) {
  const int cores = read_hardware().cores;
  const data::DataReport report =
      read_data(*recipe.recipe.registries, recipe.recipe)->inspect(cores);
  std::fputs((json ? data::to_json(report) + "\n" : data::to_text(report)).c_str(), stdout);
}

}  // namespace

ExitCode run_env(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Describe this machine, or what a recipe reads (--data).\n\n"
      "Example: gallop env --data cifar10 data.path=pictures",
      "gallop env");
  std::string data_recipe, model_recipe;
  bool json = false;
  parser.add_option("--data", data_recipe,
                    "RECIPE: sizes, classes, shapes and broken files of its data");
  parser.add_option("--model", model_recipe)->group("");
  parser.add_flag("--json", json, "print JSON");
  std::vector<std::string> rest = arguments;
  const auto overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return ExitCode::kDone;

  if (!model_recipe.empty()) {
    throw UsageError(fmt::format("gallop env --model has become a command: gallop model {}",
                                 printable(model_recipe)));
  }
  const Registries& registries = command.registries();
  if (!data_recipe.empty()) show_data(load_recipe(registries, data_recipe, overrides), json);
  if (data_recipe.empty()) show_machine(json);
  return ExitCode::kDone;
}

}  // namespace gallop::app
