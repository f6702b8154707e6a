#include "gallop/app/recipe_actions.h"

#include <fmt/format.h>

#include "gallop/app/family_help.h"
#include "gallop/app/output_file.h"
#include "gallop/app/recipe.h"
#include "gallop/app/schedule_plots.h"
#include "gallop/app/terminal.h"
#include "gallop/config/resolve.h"

namespace gallop::app {

void print_recipe_options() {
  const Families families;
  Recipe recipe(families);
  fmt::print("Options of every recipe\n");
  const auto visit_fields = [&](config::Visitor& visitor) { visit(visitor, recipe); };
  for (const auto& line : config::describe_fields(visit_fields, "")) {
    const bool common = line.key.starts_with("train.") || line.key.starts_with("schedules.") ||
                        line.key.ends_with(".name") || line.key.ends_with(".wrappers") ||
                        line.key.starts_with("data.");
    if (!common) continue;
    fmt::print("  {:<34} {}  [{}; default {}]\n", line.key, line.help, line.type, line.initial);
  }
  print_members("data", families.readers);
  print_members("data.augment", families.augmentations);
  print_members("model", families.models);
  print_members("optimizer", families.optimizers);
  print_members("optimizer.wrappers", families.wrappers);
  print_members("schedule", families.schedules);
}

void draw_schedule(const std::string& recipe, const std::vector<Override>& overrides,
                   const std::string& svg) {
  const Families families;
  const ResolvedRecipe resolved = load_recipe(families, recipe, overrides);
  auto plots = schedule_plots(families, resolved);
  plots.front().title = resolved.name + ": " + plots.front().title;
  for (const plot::XyPlot& each : plots) print_plot(each);
  if (!svg.empty()) write_output(svg, plot::to_svg(plots));
}

void list_schedules(const std::string& svg) {
  const Families families;
  for (const auto& member : families.schedules.members()) {
    fmt::print("{:<18} {}\n", member.name, member.help);
  }
  if (!svg.empty()) {
    write_output(svg, plot::to_svg(all_schedules(families), /*columns=*/3));
  }
}

}  // namespace gallop::app
