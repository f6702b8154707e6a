#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

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

// What an action of 'gallop recipes' does and takes, for its help.
struct Action {
  std::string_view name, summary, help, example;
  std::string_view recipe;  // What the argument RECIPE is; empty: the action takes none.
  bool draws = false;       // Whether it takes --svg.
};

constexpr Action kActions[] = {
    {.name = "list",
     .summary = "list the built-in recipes",
     .help = "List the recipes that come with Gallop.",
     .example = "gallop recipes list",
     .recipe = {}},
    {.name = "show",
     .summary = "print a built-in recipe",
     .help = "Print a recipe that comes with Gallop.",
     .example = "gallop recipes show cifar10",
     .recipe = "name of a built-in recipe"},
    {.name = "copy",
     .summary = "copy a built-in recipe to a file, to edit it",
     .help = "Copy a recipe that comes with Gallop to a file, to edit it.",
     .example = "gallop recipes copy cifar10 my.yaml",
     .recipe = "name of a built-in recipe"},
    {.name = "options",
     .summary = "list the options that a recipe may have",
     .help = "List the options that a recipe may have: all, those of a section, or those of a "
             "component.",
     .example = "gallop recipes options optimizer.adamw",
     .recipe = "what to list: a section such as train, or a component such as optimizer.adamw; by "
               "default all"},
    {.name = "schedule",
     .summary = "plot the schedules of a recipe",
     .help =
         "Plot the learning rate of a recipe, and its other schedules. Any option of the recipe "
         "can be changed on the command line.",
     .example = "gallop recipes schedule cifar10 train.epochs=20 --svg schedule.svg",
     .recipe = "a recipe's name or file",
     .draws = true},
    {.name = "schedules",
     .summary = "list and plot all schedules",
     .help = "List and plot all schedules.",
     .example = "gallop recipes schedules --svg schedules.svg",
     .recipe = {},
     .draws = true},
};

const Action* find_action(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kActions), std::end(kActions),
                                         [&](const Action& one) { return one.name == name; });
  return found == std::end(kActions) ? nullptr : found;
}

// Rejects arguments that the action does not use.
void check(const Arguments& arguments) {
  const std::string& action = arguments.action;
  const bool takes_recipe = action == "show" || action == "copy" || action == "schedule";
  if (takes_recipe && arguments.recipe.empty()) {
    throw UsageError(
        fmt::format("missing recipe; for example: gallop recipes {} fashion-mnist", action));
  }
  const Action& known = *find_action(action);
  if (known.recipe.empty() && !arguments.recipe.empty()) {
    throw UsageError(fmt::format("'gallop recipes {}' lists all of them; remove '{}'", action,
                                 printable(arguments.recipe)));
  }
  if (!arguments.svg.empty() && !known.draws) {
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

// The help of all actions, for 'gallop recipes --help'.
void print_help() {
  std::string list;
  for (const Action& action : kActions) {
    list += fmt::format("  {:<10}{}\n", action.name, action.summary);
  }
  CLI::App parser(
      "List the recipes that come with Gallop, or show, copy or plot one; list the options that a "
      "recipe may have.\n\n"
      "Example: gallop recipes copy cifar10 my.yaml\n\n"
      "'gallop recipes ACTION':\n" +
          list,
      "gallop recipes");
  parse_arguments(parser, {"--help"});
}

// Takes the action, the first of the arguments that names one; "list" without arguments.
std::string take_action(std::vector<std::string>& args) {
  const auto found = std::find_if(
      args.begin(), args.end(), [](const std::string& one) { return find_action(one) != nullptr; });
  if (found != args.end()) {
    std::string action = *found;
    args.erase(found);
    return action;
  }
  std::vector<std::string> names;
  for (const Action& action : kActions) names.emplace_back(action.name);
  for (const std::string& one : args) {
    if (one.starts_with('-')) continue;
    const std::string nearest = nearest_name(one, names);
    throw UsageError(fmt::format("unknown action '{}' of 'gallop recipes'{}", printable(one),
                                 nearest.empty() ? "; known are " + join_names(names, "and")
                                                 : "; did you mean '" + nearest + "'?"));
  }
  return "list";
}

// False if help was requested and printed, which lists what the action takes. The rest is parsed
// all the same, as check() has messages that are more helpful.
bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  if (!args.empty() && (args.front() == "--help" || args.front() == "-h")) {
    print_help();
    return false;
  }
  std::vector<std::string> rest = args;
  arguments.overrides = take_overrides(rest);
  arguments.action = take_action(rest);
  const Action& action = *find_action(arguments.action);
  const bool is_help = std::any_of(rest.begin(), rest.end(), [](const std::string& one) {
    return one == "--help" || one == "-h";
  });
  CLI::App parser(fmt::format("{}\n\nExample: {}", action.help, action.example),
                  fmt::format("gallop recipes {}", action.name));
  if (!is_help || !action.recipe.empty()) {
    parser.add_option(action.name == "options" ? "WHAT" : "RECIPE", arguments.recipe,
                      std::string(action.recipe));
  }
  if (!is_help || action.name == "copy") {
    parser.add_option("FILE", arguments.target, "target of the copy; RECIPE.yaml by default");
  }
  if (!is_help || action.draws) {
    parser.add_option("--svg", arguments.svg, "FILE: write the plot to this SVG file");
  }
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
