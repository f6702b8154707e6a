#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/data_report.h"
#include "gallop/app/evaluation_report.h"
#include "gallop/app/json_line.h"
#include "gallop/app/machine.h"
#include "gallop/app/output_file.h"
#include "gallop/app/recipe.h"
#include "gallop/app/recipe_components.h"
#include "gallop/base/error.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/data/data_module.h"
#include "gallop/data/report.h"

namespace gallop::app {

namespace {

struct Output {
  bool is_json = false;
  std::string json_file = "-";
};

// Prints a text, or writes JSON to a file or standard output.
void show(const Output& output, const std::string& text, const std::string& json) {
  if (!output.is_json) {
    std::fputs(text.c_str(), stdout);
  } else {
    write_output(output.json_file, json + "\n");
  }
}

void show_machine(const Output& output) {
  const MachineReport report = describe_machine();
  nlohmann::ordered_json object;
  std::string text;
  for (const auto& [name, value] : report) {
    object[name] = value;
    text += fmt::format("{:<18} {}\n", name, value);
  }
  show(output, text, json_line(object));
}

void show_data(const ResolvedRecipe& recipe, const Output& output) {
  const int cores = read_hardware().cores;
  const auto data = read_data(*recipe.recipe.registries, recipe.recipe);
  const data::DataReport report = data->inspect(cores);
  show(output, data::to_text(report), data::to_json(report));
}

void check_data(const ResolvedRecipe& recipe, const fs::path& folder, const Output& output) {
  const int cores = read_hardware().cores;
  const auto data = read_data(*recipe.recipe.registries, recipe.recipe);
  prepare_report_folder(folder, /*is_of_run=*/false);
  const data::DataQuality quality = data->check_quality(cores);
  write_data_report(folder, quality, recipe.name);
  const fs::path page = folder / "report.html";
  show(output,
       fmt::format("{}\nreport     {}\n", data::to_text(quality, folder.string()), page.string()),
       data::to_json(quality));
}

}  // namespace

ExitCode run_env(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Describe this machine, or the data of a recipe (--data), and look for defects in them "
      "(--report).\n\n"
      "Example: gallop env --data cifar10 data.path=pictures --report",
      "gallop env");
  std::string data_recipe, model_recipe, report, json_file;
  parser.add_option("--data", data_recipe,
                    "RECIPE: describe its data: sizes, classes, shapes and broken files");
  parser.add_option("--model", model_recipe)->group("");
  const CLI::Option* const reports =
      parser
          .add_option("--report", report,
                      "with --data: look for duplicates, leakage between splits, outliers, damaged "
                      "files, missing values and classes out of balance; write a report "
                      "(report.html, report.json, lists for data.exclude) to this folder; default "
                      "data-report")
          ->option_text("[FOLDER]")
          ->expected(0, 1);
  const CLI::Option* const json =
      parser.add_option("--json", json_file, "print JSON, or write it to a file")
          ->option_text("[FILE]")
          ->expected(0, 1);
  std::vector<std::string> rest = arguments;
  const auto overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return ExitCode::kDone;

  if (!model_recipe.empty()) {
    throw UsageError(fmt::format("gallop env --model has become a command: gallop model {}",
                                 shell_word(model_recipe)));
  }
  const Registries& registries = command.registries();
  Output output{.is_json = json->count() > 0};
  if (!json_file.empty()) output.json_file = json_file;
  if (data_recipe.empty()) {
    if (reports->count() > 0) {
      throw UsageError(
          "--report looks at the data of a recipe; name one: gallop env --data RECIPE --report");
    }
    show_machine(output);
    return ExitCode::kDone;
  }
  const ResolvedRecipe recipe = load_recipe(registries, data_recipe, overrides);
  if (reports->count() > 0) {
    check_data(recipe, report.empty() ? "data-report" : report, output);
  } else {
    show_data(recipe, output);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
