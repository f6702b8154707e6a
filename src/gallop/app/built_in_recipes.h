#pragma once

#include <vector>

namespace gallop::app {

/// A built-in recipe, embedded in the program.
struct BuiltInRecipe {
  const char* name;
  const char* yaml;
};

const std::vector<BuiltInRecipe>& built_in_recipes();

}  // namespace gallop::app
