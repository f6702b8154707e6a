#pragma once

#include <string>

#include "gallop/app/command.h"

namespace gallop::app {

/// Prints the options that a recipe may have, with help, type and default, from the visitors that
/// read it: all where `key` is empty, else those of a section ("train"), a family and its members
/// ("optimizer"), a member ("optimizer.adamw") or one option ("train.clip_grad_norm"). Throws
/// UsageError with the nearest where there is no such thing.
void print_recipe_options(const CommandContext& command, const std::string& key);

}  // namespace gallop::app
