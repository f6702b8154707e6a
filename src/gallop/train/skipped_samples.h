#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace gallop::train {

/// Samples of updates that were skipped, such as those by which fp16 finds its loss scale. They do
/// not count as progress of schedules: the next update has the same rate.
///
/// Where results come late, a skipped update counts a fixed number of updates later, by which time
/// its result is there in any case: so schedules do not depend on how fast results came.
class SkippedSamples {
 public:
  explicit SkippedSamples(int64_t behind) : behind_(behind) {}

  /// Update `step`, from 0, was skipped. In the order of steps.
  void skipped(int64_t step, int64_t samples) { pending_.push_back({step, samples}); }

  /// Of the skipped updates that count for update `step`, or for an evaluation before it.
  int64_t samples_before(int64_t step);

  /// For checkpoints, beside what Progress writes; and the inverse, which throws DataError where a
  /// value is missing or no number.
  void write(std::map<std::string, std::string>& map) const;
  void read(const std::map<std::string, std::string>& map);

 private:
  struct Skipped {
    int64_t step, samples;
  };

  int64_t behind_;
  int64_t samples_ = 0;
  std::deque<Skipped> pending_;  // Not in `samples_` yet.
};

}  // namespace gallop::train
