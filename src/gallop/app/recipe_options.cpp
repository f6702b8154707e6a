#include "gallop/app/recipe_options.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "gallop/app/family_help.h"
#include "gallop/app/recipe.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/resolve.h"

namespace gallop::app {

namespace {

/// A plug-in family and the key under which a recipe selects its member.
struct FamilyAt {
  std::string key;
  const config::Catalog& catalog;
};

std::vector<FamilyAt> families_in(const Registries& registries) {
  return {{"data", registries.data_modules},
          {"data.augment", registries.augmentations},
          {"data.batch_transforms", registries.batch_transforms},
          {"model", registries.models},
          {"model.layers", registries.models.layers},
          {"optimizer", registries.optimizers},
          {"optimizer.wrappers", registries.wrappers},
          {"schedule", registries.schedules},
          {"train.loss", registries.losses},
          {"train.metrics", registries.metrics},
          {"parallel", registries.strategies}};
}

// Whether `key` is `path` or one of the options below it.
bool is_within(const std::string& key, const std::string& path) {
  return key.starts_with(path) && (key.size() == path.size() || key[path.size()] == '.');
}

// Options that do not depend on the selected members.
std::vector<config::FieldHelp> common_options(const Registries& registries) {
  std::set<std::string> of_members;
  for (const FamilyAt& family : families_in(registries)) {
    for (const auto& member : family.catalog.members()) {
      for (const auto& line : options_of(family.key, family.catalog, member)) {
        of_members.insert(line.key);
      }
    }
  }
  Recipe recipe(std::shared_ptr<const Registries>(std::shared_ptr<void>(), &registries));
  auto lines =
      config::describe_fields([&](config::Visitor& visitor) { visit(visitor, recipe); }, "");
  std::erase_if(lines, [&](const auto& line) { return of_members.contains(line.key); });
  return lines;
}

// All keys that can be looked up.
std::vector<std::string> known_keys(const Registries& registries,
                                    const std::vector<config::FieldHelp>& common) {
  std::set<std::string> keys;
  for (const auto& line : common) {
    for (size_t dot = line.key.find('.'); dot != std::string::npos;
         dot = line.key.find('.', dot + 1)) {
      keys.insert(line.key.substr(0, dot));
    }
    keys.insert(line.key);
  }
  for (const FamilyAt& family : families_in(registries)) {
    keys.insert(family.key);
    for (const auto& member : family.catalog.members()) {
      keys.insert(family.key + "." + member.name);
      for (const auto& line : options_of(family.key, family.catalog, member)) keys.insert(line.key);
    }
  }
  return {keys.begin(), keys.end()};
}

// The known keys that end with `key`, such as 'train.loss.focal' for "focal"; otherwise the
// nearest.
std::string suggestion(const std::string& key, const std::vector<std::string>& known) {
  constexpr size_t kMost = 5;
  std::vector<std::string> found;
  for (const std::string& one : known) {
    if (one.ends_with("." + key) && found.size() < kMost) found.push_back("'" + one + "'");
  }
  if (!found.empty()) return join_names(found);
  const std::string nearest = nearest_name(key, known);
  return nearest.empty() ? "" : "'" + nearest + "'";
}

void print_all(const Registries& registries) {
  fmt::print(
      "{}",
      "'gallop recipes options optimizer.adamw' prints those of one optimizer; the same works "
      "for\nother registries, sections (train) and options (train.clip_grad_norm).\n\n"
      "Options of every recipe\n");
  OptionPrinter printer;
  for (const auto& line : common_options(registries)) printer.print(line);
  for (const FamilyAt& family : families_in(registries)) {
    printer.print_members(family.key, family.catalog);
  }
}

// Prints the members that have an option of this name. False if there are none.
bool print_option_of_members(OptionPrinter& printer, const Registries& registries,
                             const std::string& key) {
  bool is_known = false;
  for (const FamilyAt& family : families_in(registries)) {
    for (const auto& member : family.catalog.members()) {
      for (const auto& line : options_of(family.key, family.catalog, member)) {
        if (line.key != key) continue;
        if (is_known) fmt::print("\n");
        fmt::print("{}: {}\n", family.key, member.name);
        printer.print(line);
        is_known = true;
      }
    }
  }
  return is_known;
}

// Prints a family or one of its members. False if the key is neither.
bool print_family(OptionPrinter& printer, const Registries& registries, const std::string& key) {
  for (const FamilyAt& family : families_in(registries)) {
    if (key == family.key) {
      printer.print_members(family.key, family.catalog);
      return true;
    }
    for (const auto& member : family.catalog.members()) {
      if (key != family.key + "." + member.name) continue;
      printer.print_member(family.key, family.catalog, member);
      return true;
    }
  }
  return false;
}

}  // namespace

void print_recipe_options(const CommandContext& command, const std::string& key) {
  const Registries& registries = command.registries();
  if (key.empty()) return print_all(registries);
  OptionPrinter printer;
  const auto common = common_options(registries);
  bool is_known = false;
  for (const auto& line : common) {
    if (!is_within(line.key, key)) continue;
    printer.print(line);
    is_known = true;
  }
  // A section and a family may have the same name: then both are printed.
  is_known |= print_family(printer, registries, key);
  if (is_known || print_option_of_members(printer, registries, key)) return;
  const std::string nearest = suggestion(key, known_keys(registries, common));
  throw UsageError(
      fmt::format("recipes have no section, family, member or option '{}'{} 'gallop recipes "
                  "options' lists all, and 'gallop recipes options optimizer.adamw' those of one "
                  "member",
                  printable(key), nearest.empty() ? ";" : "; did you mean " + nearest + "?"));
}

}  // namespace gallop::app
