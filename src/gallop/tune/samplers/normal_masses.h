#pragma once

#include <cstddef>

namespace gallop::tune {

/// Normal distributions, in structure-of-arrays layout.
struct NormalColumns {
  size_t count = 0;
  const double* centers = nullptr;
  const double* scales = nullptr;  ///< 1 / (sqrt(2) * deviation).
};

/// Writes to `masses` the log-probability of [low, high] under each distribution: to 1e-13, or, for
/// probabilities p below 0.001, to 1e-16 / p. The minimum is about -690.
void log_masses(const NormalColumns& normals, double low, double high, double* masses);

}  // namespace gallop::tune
