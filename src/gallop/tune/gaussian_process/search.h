#pragma once

#include <vector>

#include "gallop/tune/gaussian_process/acquisition.h"
#include "gallop/tune/gaussian_process/coordinates.h"
#include "gallop/tune/random.h"

namespace gallop::tune {

struct SearchSettings {
  size_t candidates = 2048;  ///< How many points are looked at.
  size_t around_good = 0;    ///< So many of them are good ones with some coordinates drawn again.
  size_t starts = 10;        ///< From how many of them is climbed; half may be good ones.
};

/// Points that promise much, the most promising first, all of them different and allowed by the
/// space's constraints. Quasi-random candidates and `good` points are looked at; from the best,
/// others drawn by what they promise, and the good ones the coordinates without steps are climbed
/// along gradients and those with steps or choices by trying other values, in turn. Throws
/// UsageError where no point is found that the constraints allow.
std::vector<Point> search(const Acquisition& acquisition, const Coordinates& coordinates,
                          const std::vector<std::vector<double>>& good, Random random,
                          const SearchSettings& settings);

}  // namespace gallop::tune
