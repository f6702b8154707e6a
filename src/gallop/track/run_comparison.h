#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/track/log.h"
#include "gallop/track/points.h"

namespace gallop::track {

/// A value that two runs have not alike; nothing where one has none.
struct ResultDifference {
  int64_t step = 0;
  std::string metric;
  std::optional<double> one{}, other{};
};

/// How the results of two runs differ.
struct RunComparison {
  int64_t compared = 0;  ///< Values that say what was computed, of one run or both.
  int64_t metrics = 0;   ///< Of as many.
  std::vector<ResultDifference> differences{};  ///< In the order of their steps.
};

/// Compares what two runs computed, bit for bit; what tells of time and of the machine is passed
/// over.
RunComparison compare_results(const Log& one, const Log& other);

}  // namespace gallop::track
