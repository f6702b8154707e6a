#pragma once

#include <optional>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Grid search: all combinations of values, each once, in an order shuffled by the study's seed,
/// without those that the study already has. Inactive parameters add no combinations.
struct GridConfig {
  /// Number of grid points of a continuous interval, evenly spaced on its scale.
  std::optional<int64_t> points;
  bool shuffle = true;
};

void visit(config::Visitor& visitor, GridConfig& config);
/// The number of points of the grid, also those that constraints reject. Throws UsageError if it is
/// infinite or too large.
int64_t grid_size(const Space& space, const GridConfig& config);
std::unique_ptr<Sampler> make_grid(const GridConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
