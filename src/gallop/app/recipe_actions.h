#pragma once

#include <string>
#include <vector>

#include "gallop/app/command.h"

namespace gallop::app {

// What 'gallop recipes' does by all that a recipe may name.

/// Draws the schedule of a recipe, by name or path: in the terminal and, where it is named, in an
/// SVG file.
void draw_schedule(const CommandContext& command, const std::string& recipe,
                   const std::vector<Override>& overrides, const std::string& svg);

/// Lists all schedules, and draws them where an SVG file is named.
void list_schedules(const CommandContext& command, const std::string& svg);

}  // namespace gallop::app
