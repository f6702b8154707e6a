#include "gallop/app/recipe_actions.h"

#include <fmt/format.h>

#include "gallop/app/output_file.h"
#include "gallop/app/recipe.h"
#include "gallop/app/schedule_plots.h"
#include "gallop/app/terminal.h"

namespace gallop::app {

void draw_schedule(const CommandContext& command, const std::string& recipe,
                   const std::vector<Override>& overrides, const std::string& svg) {
  const Registries& registries = command.registries();
  const ResolvedRecipe resolved = load_recipe(registries, recipe, overrides);
  auto plots = schedule_plots(*resolved.recipe.registries, resolved);
  plots.front().title = resolved.name + ": " + plots.front().title;
  for (const plot::XyPlot& each : plots) print_plot(each);
  if (!svg.empty()) write_output(svg, plot::to_svg(plots));
}

void list_schedules(const CommandContext& command, const std::string& svg) {
  const Registries& registries = command.registries();
  for (const auto& member : registries.schedules.members()) {
    fmt::print("{:<18} {}\n", member.name, member.help);
  }
  if (!svg.empty()) {
    write_output(svg, plot::to_svg(all_schedules(registries), /*columns=*/3));
  }
}

}  // namespace gallop::app
