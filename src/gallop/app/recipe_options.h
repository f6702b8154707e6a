#pragma once

#include <string>

#include "gallop/app/command.h"

namespace gallop::app {

/// Prints the options of recipes, with help, type and default, from the visitors that read them:
/// all options if `key` is empty, otherwise those of a section ("train"), a family with its members
/// ("optimizer"), a member ("optimizer.adamw") or one option ("train.clip_grad_norm"). Throws
/// UsageError with the nearest key for an unknown one.
void print_recipe_options(const CommandContext& command, const std::string& key);

}  // namespace gallop::app
