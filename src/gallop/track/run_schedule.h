#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// The planned values of a run's schedules over its whole length: RUN/schedule.json.
struct RunSchedule {
  struct Line {
    std::string metric{};  ///< Metric of the actual values in the log: "train.lr".
    /// "cosine"; empty for values that follow the learning rate's schedule.
    std::string schedule{};
    /// Depends on evaluations; the values assume that they keep improving.
    bool follows_evaluations = false;
    std::vector<double> values{};  ///< One per item of `at`.
  };

  int64_t steps = 0;  ///< Length of the run.
  int64_t steps_per_epoch = 0;
  std::vector<int64_t> at;  ///< Steps in ascending order; the first is 1.
  std::vector<Line> lines;
};

/// Writes schedule.json. Throws DeviceError.
void write_run_schedule(const fs::path& run, const RunSchedule& schedule);

/// Nothing if the run has none. Throws DataError if the file is damaged.
std::optional<RunSchedule> read_run_schedule(const fs::path& run);

}  // namespace gallop::track
