#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// Which classes a run's model takes for which, and images that it is sure of and wrong about:
/// RUN/report/report.json, with the images beside it.
struct ClassReport {
  struct Mistake {
    std::string image;  ///< "00.png"
    int width = 0, height = 0, channels = 0;
    int64_t truth = 0, guess = 0;
    double probability = 0;  ///< Of the guess.
  };

  int64_t step = 0;  ///< Of the checkpoint.
  std::string part;  ///< Of the data: "test".
  std::vector<std::string> classes;
  std::vector<std::vector<int64_t>> counts;  ///< By truth, then guess.
  std::vector<Mistake> mistakes;             ///< The surest first.
};

/// Where a run keeps it.
fs::path class_report_of(const fs::path& run);

/// Writes report.json; the images have to be there. Throws DeviceError.
void write_class_report(const fs::path& run, const ClassReport& report);

/// Nothing where the run has none. Throws DataError where it is damaged.
std::optional<ClassReport> read_class_report(const fs::path& run);

}  // namespace gallop::track
