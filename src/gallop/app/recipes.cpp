#include <cstdio>
#include <string>
#include <string_view>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/built_in_recipes.h"
#include "gallop/app/command.h"
#include "gallop/app/recipe_actions.h"
#include "gallop/app/recipe_options.h"
#include "gallop/base/file.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

struct Arguments {
  std::string action = "list";
  std::string recipe;
  std::string target;
  std::string svg;
  std::vector<Override> overrides;
};

// Rejects arguments that the action does not use.
void check(const Arguments& arguments) {
  const std::string& action = arguments.action;
  const bool draws = action == "schedule" || action == "schedules";
  const bool takes_recipe = action == "show" || action == "copy" || action == "schedule";
  if (takes_recipe && arguments.recipe.empty()) {
    throw UsageError(
        fmt::format("missing recipe; for example: gallop recipes {} fashion-mnist", action));
  }
  const bool is_of_all = action == "list" || action == "schedules";
  if (is_of_all && !arguments.recipe.empty()) {
    throw UsageError(fmt::format("'gallop recipes {}' lists all of them; remove '{}'", action,
                                 printable(arguments.recipe)));
  }
  if (!arguments.svg.empty() && !draws) {
    throw UsageError(fmt::format("--svg applies to schedule and schedules, not to {}", action));
  }
  if (!arguments.target.empty() && action != "copy") {
    throw UsageError(fmt::format("unexpected argument '{}': '{}' has no target file",
                                 printable(arguments.target), action));
  }
  if (!arguments.overrides.empty() && action != "schedule") {
    throw UsageError(fmt::format("{} has no effect on 'gallop recipes {}', only on schedule",
                                 arguments.overrides.front().path, action));
  }
}

const BuiltInRecipe& find_recipe(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& recipe : built_in_recipes()) {
    if (name == recipe.name) return recipe;
    names.emplace_back(recipe.name);
  }
  throw UsageError(
      fmt::format("unknown recipe '{}'. Recipes: {}", printable(name), join_names(names, "and")));
}

// The first comment line of a recipe.
std::string_view summary_of(const BuiltInRecipe& recipe) {
  const std::string_view text(recipe.yaml);
  return text.starts_with("# ") ? text.substr(2, text.find('\n') - 2) : std::string_view();
}

void list_recipes() {
  for (const auto& recipe : built_in_recipes()) {
    fmt::print("{:<16} {}\n", recipe.name, summary_of(recipe));
  }
}

void copy_recipe(const std::string& name, std::string target) {
  const BuiltInRecipe& recipe = find_recipe(name);
  if (target.empty()) target = name + ".yaml";
  if (fs::exists(target)) {
    throw UsageError(fmt::format("{} exists already; give another name as third argument", target));
  }
  write_file_atomically(target, recipe.yaml);
  fmt::print("{} copied to {}. Edit it, then: {}\n", name, printable(target),
             shell_line({"gallop", "train", target}));
}

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "List the recipes that come with Gallop, show one, copy one to edit it, list the options "
      "that\n"
      "a recipe may have, draw the schedule of a recipe, or list all schedules.\n\n"
      "Example: gallop recipes copy cifar10 my.yaml\n"
      "         gallop recipes options                    all options\n"
      "         gallop recipes options optimizer.adamw    those of one optimizer\n"
      "         gallop recipes options train              those of one section",
      "gallop recipes");
  parser.add_option("ACTION", arguments.action, "list, show, copy, options, schedule or schedules")
      ->check(CLI::IsMember({"list", "show", "copy", "options", "schedule", "schedules"}));
  parser.add_option("RECIPE", arguments.recipe,
                    "the recipe; for schedule also a file; for options what to "
                    "list");
  parser.add_option("FILE", arguments.target, "target of the copy; RECIPE.yaml by default");
  parser.add_option("--svg", arguments.svg, "write the schedules to this SVG file");
  std::vector<std::string> rest = args;
  arguments.overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return false;
  check(arguments);
  return true;
}

}  // namespace

ExitCode run_recipes(const CommandContext& command, const std::vector<std::string>& arguments) {
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  const std::string& action = parsed.action;
  if (action == "list") {
    list_recipes();
  } else if (action == "options") {
    print_recipe_options(command, parsed.recipe);
  } else if (action == "schedules") {
    list_schedules(command, parsed.svg);
  } else if (action == "schedule") {
    draw_schedule(command, parsed.recipe, parsed.overrides, parsed.svg);
  } else if (action == "show") {
    std::fputs(find_recipe(parsed.recipe).yaml, stdout);
  } else {
    copy_recipe(parsed.recipe, parsed.target);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
