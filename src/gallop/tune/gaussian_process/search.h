#pragma once

#include <vector>

#include "gallop/tune/gaussian_process/acquisition.h"
#include "gallop/tune/gaussian_process/coordinates.h"
#include "gallop/tune/random.h"

namespace gallop::tune {

struct SearchSettings {
  size_t candidates = 2048;  ///< Number of candidate points.
  /// Number of candidates that are good points with some coordinates resampled.
  size_t around_good = 0;
  size_t starts = 10;  ///< Number of starts of the local search; up to half are good points.
};

/// Maximizes an acquisition function: the points that the local search reached, best first, and
/// then the best candidates. All are allowed by the space's constraints; some may be equal. The
/// local search starts at the best candidate, at others sampled by their value, and at good points;
/// it alternates between gradient ascent in continuous dimensions and trying other values of
/// discrete ones. Throws UsageError if the constraints allow no point.
std::vector<Point> search(const Acquisition& acquisition, const Coordinates& coordinates,
                          const std::vector<std::vector<double>>& good, Random random,
                          const SearchSettings& settings);

}  // namespace gallop::tune
