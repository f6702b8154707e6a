#pragma once

#include <vector>

#include "gallop/tune/gaussian_process/acquisition.h"
#include "gallop/tune/gaussian_process/coordinates.h"
#include "gallop/tune/random.h"

namespace gallop::tune {

/// A measurement at some time of a population's training.
struct TimedMeasurement {
  Point point;
  double time = 0;   ///< In segments of the population: 1 is the interval between exchanges.
  double value = 0;  ///< To be minimized, such as the change of the loss.
};

/// The point with the lowest confidence bound at a time, given the points in evaluation, by a
/// Gaussian process that discounts old observations (Parker-Holder et al., "Provably efficient
/// online hyperparameter optimization with population-based bandits", 2020). `measured` has at
/// least two items; the run time is cubic in their number. Throws UsageError if no point satisfies
/// the constraints.
Point lowest_bound_at(const Coordinates& coordinates, const std::vector<TimedMeasurement>& measured,
                      const std::vector<Point>& pending, double time, const Random& random);

/// The width of the confidence bound in standard deviations after so many measurements (constants
/// of the authors' implementation).
double bound_width(size_t measurements);

}  // namespace gallop::tune
