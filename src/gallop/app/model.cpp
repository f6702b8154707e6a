#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/export_helper.h"
#include "gallop/app/recipe.h"
#include "gallop/app/recipe_components.h"
#include "gallop/base/text.h"
#include "gallop/model/exported/description.h"
#include "gallop/model/summary.h"

namespace gallop::app {

namespace {

bool is_archive(const std::string& what) {
  return what.ends_with(".pt2") || what.ends_with(".pt") || what.ends_with(".pth");
}

ExitCode show_archive(const std::string& file, bool runs_sample, bool json) {
  const auto description = model::exported::describe_archive(file, runs_sample);
  std::fputs((json ? to_json(description) + "\n" : to_text(description)).c_str(), stdout);
  if (!description.problems.empty()) return ExitCode::kData;
  if (!json) {
    fmt::print("\nto train it, in a recipe:\n  model: {{name: exported, file: {}}}\n",
               printable(file));
  }
  return ExitCode::kDone;
}

void show_layers(const ResolvedRecipe& recipe, bool json) {
  const Registries& registries = *recipe.recipe.registries;
  const auto data = open_data(registries, recipe.recipe);
  const model::Task task = model_task(data->signature, registries.tasks);
  const auto model = build_model(registries, recipe, task, model::InitialWeights(1));
  const auto layers = model::summarize(*model, task);
  std::fputs((json ? model::to_json(layers) + "\n" : model::to_table(layers)).c_str(), stdout);
}

}  // namespace

ExitCode run_model(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Describe a model: an archive of torch.export.save() (.pt2) with its inputs, outputs, and\n"
      "what cannot be trained, or the layers of a recipe's model with parameters, FLOPs and\n"
      "activation bytes.\n\n"
      "Examples: gallop model net.pt2\n"
      "          gallop model cifar10 model.depth=32\n"
      "          gallop model --export-helper > gallop_export.py\n\n"
      "The archive's sample is run, and the outputs are compared with those that gallop_export.py\n"
      "stored at the export, if any. Exit code 3: the archive cannot be trained.",
      "gallop model");
  std::string what;
  bool json = false, skips_sample = false, helper = false;
  parser.add_option("MODEL", what, "a .pt2 file, or a recipe's name or file");
  parser.add_flag("--no-sample", skips_sample, "do not run the archive's sample");
  parser.add_flag("--json", json, "print JSON");
  parser.add_flag("--export-helper", helper,
                  "print gallop_export.py, which exports models from Python");
  std::vector<std::string> rest = arguments;
  const auto overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return ExitCode::kDone;
  if (helper && (!what.empty() || skips_sample || json || !overrides.empty())) {
    throw UsageError("--export-helper prints a Python file, and takes no model and other options");
  }
  if (helper) {
    std::fputs(export_helper(), stdout);
    return ExitCode::kDone;
  }
  if (what.empty()) {
    throw UsageError("gallop model: give a .pt2 file, or a recipe's name or file");
  }
  if (is_archive(what)) {
    if (!overrides.empty()) {
      throw UsageError(fmt::format("{}: options are for recipes, and this is an archive",
                                   printable(overrides.front().path)));
    }
    return show_archive(what, !skips_sample, json);
  }
  if (skips_sample) {
    throw UsageError("--no-sample is for archives of torch.export (.pt2), which contain a sample");
  }
  show_layers(load_recipe(command.registries(), what, overrides), json);
  return ExitCode::kDone;
}

}  // namespace gallop::app
