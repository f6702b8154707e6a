#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/track/log.h"

namespace gallop::track {

/// The distribution of a tensor's elements at a step. RUN/histograms.log contains such records, one
/// per tensor and step, and is rewound together with the run.
struct Histogram {
  std::string name;  ///< Name of the tensor, as in checkpoints.
  int64_t step = 0;
  double time = 0;              ///< Seconds since 1970.
  double least = 0, most = 0;   ///< Of the finite elements.
  std::vector<int64_t> counts;  ///< Bins of equal width from `least` to `most`.
  int64_t not_finite = 0;
};

Record record_of(const Histogram& histogram);
/// Parses a record. Throws DataError if it is not a histogram.
Histogram histogram_of(const Record& record);

/// Reads the histograms of a run; empty if it has none. Throws DataError if the file cannot be
/// read.
std::vector<Histogram> read_histograms(const fs::path& run);

/// The path of a run's histograms.
fs::path histograms_of(const fs::path& run);

}  // namespace gallop::track
