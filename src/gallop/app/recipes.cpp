#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/recipe.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/config/resolve.h"

namespace gallop::app {

namespace {

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

void print_members(const char* section, const config::Catalog& catalog) {
  for (const auto& member : catalog.members()) {
    fmt::print("\n{}: {}  {}\n", section, member.name, member.help);
    const auto options = member.make_options(catalog);
    const auto visit_fields = [&](config::Visitor& visitor) { options->visit_fields(visitor); };
    for (const auto& line : config::describe_fields(visit_fields, section)) {
      fmt::print("  {:<34} {}  [{}; default {}]\n", line.key, line.help, line.type, line.initial);
    }
  }
}

// Every key that a recipe may have, from the same visitors that read it.
void print_options() {
  const Families families;
  Recipe recipe(families);
  fmt::print("Options of every recipe\n");
  const auto visit_fields = [&](config::Visitor& visitor) { visit(visitor, recipe); };
  for (const auto& line : config::describe_fields(visit_fields, "")) {
    const bool common = line.key.starts_with("train.") || line.key.ends_with(".name") ||
                        line.key.starts_with("data.");
    if (!common) continue;
    fmt::print("  {:<34} {}  [{}; default {}]\n", line.key, line.help, line.type, line.initial);
  }
  print_members("data", families.readers);
  print_members("data.augment", families.augmentations);
  print_members("model", families.models);
  print_members("optimizer", families.optimizers);
  print_members("schedule", families.schedules);
}

}  // namespace

ExitCode run_recipes(const std::vector<std::string>& arguments) {
  CLI::App parser(
      "List the recipes that come with Gallop, show one, copy one to edit it, or list every "
      "option\n"
      "that a recipe may have.\n\nExample: gallop recipes copy cifar10 my.yaml",
      "gallop recipes");
  std::string action = "list", name, target;
  parser.add_option("ACTION", action, "list, show, copy or options")
      ->check(CLI::IsMember({"list", "show", "copy", "options"}));
  parser.add_option("RECIPE", name, "the recipe to show or copy");
  parser.add_option("FILE", target, "where to copy it; RECIPE.yaml by default");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;

  if (action == "list") {
    list_recipes();
  } else if (action == "options") {
    print_options();
  } else if (name.empty()) {
    throw UsageError(
        fmt::format("which recipe? For example: gallop recipes {} fashion-mnist", action));
  } else if (action == "show") {
    std::fputs(find_recipe(name).yaml, stdout);
  } else {
    copy_recipe(name, target);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
