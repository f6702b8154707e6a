#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace gallop::train {

/// Samples of skipped updates, such as those by which fp16 finds its loss scale. They do not count
/// as progress of schedules: the next update has the same rate.
///
/// With asynchronous results, a skipped update counts a fixed number of updates later, when its
/// result is available in any case, so that schedules do not depend on timing.
class SkippedSamples {
 public:
  explicit SkippedSamples(int64_t behind) : behind_(behind) {}

  /// Records that update `step`, from 0, was skipped. Must be called in the order of steps.
  void skipped(int64_t step, int64_t samples) { pending_.push_back({step, samples}); }

  /// Samples of the skipped updates that count at update `step`, or at an evaluation before it.
  int64_t samples_before(int64_t step);

  /// Writes the state to a checkpoint's map, in addition to Progress; and reads it. Throws
  /// DataError if a value is missing or not a number.
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
