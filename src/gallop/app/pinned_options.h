#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/app/recipe.h"

namespace gallop::app {

/// What a training has resolved.
struct PinnedValues {
  std::string precision;
  bool channels_last = false;
  std::string loss{};  ///< Empty: the recipe's.
  int64_t batch_size = 0;
  double lr = 0;
};

/// `options`, and the values of what the recipe leaves open, so that trainings with other options
/// differ in those alone.
std::vector<std::string> pinned_options(const ResolvedRecipe& open,
                                        std::vector<std::string> options,
                                        const PinnedValues& values);

}  // namespace gallop::app
