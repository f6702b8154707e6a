#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// Assigns trials to generations: a trial belongs to the generation that was current when its point
/// was chosen. Asynchronous, so that trials may end after their generation.
///
///     while (const Trial* trial = generations.next(study)) {
///       ...
///       if (IS_COMPLETE) generations.begin_next();
///     }
class Generations {
 public:
  /// `pruned`: includes pruned trials with reports.
  explicit Generations(bool pruned) : pruned_(pruned) {}

  /// Whether all trials read so far are unchanged, so that next() can continue. If one of them was
  /// resumed, all trials must be read again, as it counts at its last end.
  bool is_valid(const Study& study) const;

  /// The next trial in the order in which trials ended; nullptr if there is none yet.
  const Trial* next(const Study& study);

  size_t generation_of(const Trial& trial) const;

  /// Starts the next generation: trials whose points are chosen from now on belong to it.
  void begin_next() { begins_.push_back(read_); }

  /// The index of the current generation, from 0.
  size_t current() const { return begins_.size(); }

 private:
  bool counts(const Trial& trial) const;

  bool pruned_;
  int64_t read_ = 0;  // Number of items of Study::finished() read.
  // Number of ended trials at the start of each generation but the first.
  std::vector<int64_t> begins_;
  std::unordered_map<int64_t, int64_t> counted_;  // Trials read, and the positions of their ends.
};

/// The first loss of a trial; that of its last report if it was pruned. NaN is infinite.
double loss_of(const Trial& trial);

}  // namespace gallop::tune
