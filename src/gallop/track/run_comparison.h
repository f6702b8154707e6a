#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/track/log.h"
#include "gallop/track/points.h"

namespace gallop::track {

/// A value that differs between two runs; nothing if one run lacks it.
struct ResultDifference {
  int64_t step = 0;
  std::string metric;
  std::optional<double> one{}, other{};
};

/// The differences between the results of two runs.
struct RunComparison {
  int64_t compared = 0;                         ///< Number of result values in either run.
  int64_t metrics = 0;                          ///< Number of their metrics.
  std::vector<ResultDifference> differences{};  ///< Ordered by step.
};

/// Compares the results of two runs bitwise, ignoring times and system metrics.
RunComparison compare_results(const Log& one, const Log& other);

}  // namespace gallop::track
