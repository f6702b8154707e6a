#pragma once

#include <cstddef>

namespace gallop::tune {

/// Normal distributions, by columns.
struct NormalColumns {
  size_t count = 0;
  const double* centers = nullptr;
  const double* scales = nullptr;  ///< 1 / (sqrt(2) * deviation).
};

/// The logarithm of the share of each distribution between two numbers, in `masses`: to 1e-13, or
/// where the share is smaller than 0.001 to 1e-16 of its inverse. About -690 is the least.
void log_masses(const NormalColumns& normals, double low, double high, double* masses);

}  // namespace gallop::tune
