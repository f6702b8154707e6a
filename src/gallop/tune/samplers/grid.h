#pragma once

#include <optional>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// All combinations of values, each once, in an order that the study's seed shuffles; those that
/// the study has already are left out. A parameter whose condition does not hold adds none.
struct GridConfig {
  /// How many values of an interval without steps are taken, evenly spaced on its scale.
  std::optional<int64_t> points;
  bool shuffle = true;
};

void visit(config::Visitor& visitor, GridConfig& config);
std::unique_ptr<Sampler> make_grid(const GridConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
