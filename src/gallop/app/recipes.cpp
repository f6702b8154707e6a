#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/family_help.h"
#include "gallop/app/recipe.h"
#include "gallop/app/schedule_plots.h"
#include "gallop/app/terminal.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/config/resolve.h"

namespace gallop::app {

namespace {

struct Arguments {
  std::string action = "list";
  std::string recipe;
  std::string target;
  std::string svg;
  std::vector<Override> overrides;
};

// What an action has no use for is a mistake.
void check(const Arguments& arguments) {
  const std::string& action = arguments.action;
  const bool draws = action == "schedule" || action == "schedules";
  const bool takes_recipe = action == "show" || action == "copy" || action == "schedule";
  if (takes_recipe && arguments.recipe.empty()) {
    throw UsageError(
        fmt::format("which recipe? For example: gallop recipes {} fashion-mnist", action));
  }
  if (!arguments.svg.empty() && !draws) {
    throw UsageError(fmt::format("--svg is for schedule and schedules, not for {}", action));
  }
  if (!arguments.overrides.empty() && action != "schedule") {
    throw UsageError(fmt::format("{} changes nothing in 'gallop recipes {}'; schedule takes it",
                                 arguments.overrides.front().path, action));
  }
}

const BuiltInRecipe& find_recipe(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& recipe : built_in_recipes()) {
    if (name == recipe.name) return recipe;
    names.emplace_back(recipe.name);
  }
  throw UsageError(fmt::format("there is no recipe '{}'. Recipes: {}", printable(name),
                               join_names(names, "and")));
}

void list_recipes() {
  for (const auto& recipe : built_in_recipes()) {
    fmt::print("{:<16} {}\n", recipe.name, recipe.summary());
  }
}

void copy_recipe(const std::string& name, std::string target) {
  const BuiltInRecipe& recipe = find_recipe(name);
  if (target.empty()) target = name + ".yaml";
  if (fs::exists(target)) {
    throw UsageError(fmt::format("{} exists already; give another name as third argument", target));
  }
  write_file_atomically(target, recipe.yaml);
  fmt::print("{} copied to {}. Edit it, then: gallop train {}\n", name, target, target);
}

// Every key that a recipe may have, from the same visitors that read it.
void print_options() {
  const Families families;
  Recipe recipe(families);
  fmt::print("Options of every recipe\n");
  const auto visit_fields = [&](config::Visitor& visitor) { visit(visitor, recipe); };
  for (const auto& line : config::describe_fields(visit_fields, "")) {
    const bool common = line.key.starts_with("train.") || line.key.starts_with("vary.") ||
                        line.key.ends_with(".name") || line.key.ends_with(".wrap") ||
                        line.key.starts_with("data.");
    if (!common) continue;
    fmt::print("  {:<34} {}  [{}; default {}]\n", line.key, line.help, line.type, line.initial);
  }
  print_members("data", families.readers);
  print_members("data.augment", families.augmentations);
  print_members("model", families.models);
  print_members("optimizer", families.optimizers);
  print_members("optimizer.wrap", families.wrappers);
  print_members("schedule", families.schedules);
}

void draw_schedule(const Arguments& arguments) {
  const Families families;
  const ResolvedRecipe resolved = load_recipe(families, arguments.recipe, arguments.overrides);
  auto plots = schedule_plots(families, resolved);
  plots.front().title = resolved.name + ": " + plots.front().title;
  for (const plot::XyPlot& each : plots) print_plot(each);
  if (!arguments.svg.empty()) write_file_atomically(arguments.svg, plot::to_svg(plots));
}

void list_schedules(const std::string& svg) {
  const Families families;
  for (const auto& member : families.schedules.members()) {
    fmt::print("{:<18} {}\n", member.name, member.help);
  }
  if (!svg.empty()) {
    write_file_atomically(svg, plot::to_svg(all_schedules(families), /*columns=*/3));
  }
}

bool parse(const std::vector<std::string>& words, Arguments& arguments) {
  CLI::App parser(
      "List the recipes that come with Gallop, show one, copy one to edit it, list every option\n"
      "that a recipe may have, draw the schedule of a recipe, or list all schedules.\n\n"
      "Example: gallop recipes copy cifar10 my.yaml",
      "gallop recipes");
  parser.add_option("ACTION", arguments.action, "list, show, copy, options, schedule or schedules")
      ->check(CLI::IsMember({"list", "show", "copy", "options", "schedule", "schedules"}));
  parser.add_option("RECIPE", arguments.recipe, "the recipe; for schedule also a file");
  parser.add_option("FILE", arguments.target, "where to copy it; RECIPE.yaml by default");
  parser.add_option("--svg", arguments.svg, "FILE: draw the schedules there, for a browser");
  std::vector<std::string> rest = words;
  arguments.overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return false;
  check(arguments);
  return true;
}

}  // namespace

ExitCode run_recipes(const std::vector<std::string>& arguments) {
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  const std::string& action = parsed.action;
  if (action == "list") {
    list_recipes();
  } else if (action == "options") {
    print_options();
  } else if (action == "schedules") {
    list_schedules(parsed.svg);
  } else if (action == "schedule") {
    draw_schedule(parsed);
  } else if (action == "show") {
    std::fputs(find_recipe(parsed.recipe).yaml, stdout);
  } else {
    copy_recipe(parsed.recipe, parsed.target);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
