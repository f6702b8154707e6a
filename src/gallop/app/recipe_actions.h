#pragma once

#include <string>
#include <vector>

#include "gallop/app/command.h"

namespace gallop::app {

// Actions of 'gallop recipes' that need all components.

/// Plots the schedule of a recipe, by name or path, in the terminal and optionally to an SVG file.
void draw_schedule(const CommandContext& command, const std::string& recipe,
                   const std::vector<Override>& overrides, const std::string& svg);

/// Lists all schedules, and optionally plots them to an SVG file.
void list_schedules(const CommandContext& command, const std::string& svg);

}  // namespace gallop::app
