#pragma once

#include <vector>

#include "gallop/tune/gaussian_process/acquisition.h"
#include "gallop/tune/gaussian_process/coordinates.h"
#include "gallop/tune/random.h"

namespace gallop::tune {

/// What was measured with these values at some time of a training.
struct TimedMeasurement {
  Point point;
  double time = 0;   ///< In steps of the population, so that 1 is from one exchange to the next.
  double value = 0;  ///< To be small, as by how much the loss changed.
};

/// The point from which a small value can be expected at a time, while others are being tried: the
/// lowest confidence bound of a Gaussian process that discounts old observations (Parker-Holder et
/// al., "Provably efficient online hyperparameter optimization with population-based bandits",
/// 2020). `measured` has at least two; its time goes with the cube of their number. Throws
/// UsageError where no point is found that the space's constraints allow.
Point lowest_bound_at(const Coordinates& coordinates, const std::vector<TimedMeasurement>& measured,
                      const std::vector<Point>& pending, double time, const Random& random);

/// How many deviations below the mean the bound is, after so many measurements (the constants are
/// those of the authors' program).
double bound_width(size_t measurements);

}  // namespace gallop::tune
