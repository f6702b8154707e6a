#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// What a run's schedules come to along its whole length: RUN/schedule.json.
struct RunSchedule {
  struct Line {
    std::string metric{};    ///< As the log calls what was really taken: "train.lr".
    std::string schedule{};  ///< "cosine"; empty for what goes with the learning rate's schedule.
    /// It depends on what evaluations find; the values are those for evaluations that get better.
    bool follows_evaluations = false;
    std::vector<double> values{};  ///< One for each of `at`.
  };

  int64_t steps = 0;  ///< Of the whole run.
  int64_t steps_per_epoch = 0;
  std::vector<int64_t> at;  ///< Steps, the first is 1; rising.
  std::vector<Line> lines;
};

/// Throws DeviceError.
void write_run_schedule(const fs::path& run, const RunSchedule& schedule);

/// Nothing where the run has none. Throws DataError where it is damaged.
std::optional<RunSchedule> read_run_schedule(const fs::path& run);

}  // namespace gallop::track
