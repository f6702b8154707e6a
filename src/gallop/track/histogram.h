#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/track/log.h"

namespace gallop::track {

/// How the numbers of a tensor are spread at a step of a run. RUN/histograms.log is a log of such
/// records, one for each tensor and step, which goes back where the run does.
struct Histogram {
  std::string name;  ///< Of the tensor, as in checkpoints.
  int64_t step = 0;
  double time = 0;              ///< Seconds since 1970.
  double least = 0, most = 0;   ///< Of the finite ones.
  std::vector<int64_t> counts;  ///< In parts of the same width from the least to the most.
  int64_t not_finite = 0;
};

Record record_of(const Histogram& histogram);
/// The inverse. Throws DataError where the record is none.
Histogram histogram_of(const Record& record);

/// Those of a run, none where it has kept none. Throws DataError where the file cannot be read.
std::vector<Histogram> read_histograms(const fs::path& run);

/// Where a run keeps them.
fs::path histograms_of(const fs::path& run);

}  // namespace gallop::track
