#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// Which generation trials belong to: that which was the last when their points
/// were chosen. Workers do not wait for each other, so that trials of a generation may end after
/// it.
///
///     while (const Trial* trial = generations.next(study)) {
///       ...
///       if (IT_IS_ENOUGH) generations.begin_next();
///     }
class Generations {
 public:
  /// `pruned`: pruned trials with a report count, too.
  explicit Generations(bool pruned) : pruned_(pruned) {}

  /// Whether all that counted still stands as it did, so that next() can go on. Where a trial that
  /// counted begins again, all must be read again: it counts where it ends last.
  bool is_valid(const Study& study) const;

  /// The next trial, in the order in which they ended; nullptr where there is none yet.
  const Trial* next(const Study& study);

  size_t generation_of(const Trial& trial) const;

  /// Trials whose points are chosen from here on are of a new generation.
  void begin_next() { begins_.push_back(read_); }

  /// From 0.
  size_t current() const { return begins_.size(); }

 private:
  bool counts(const Trial& trial) const;

  bool pruned_;
  int64_t read_ = 0;             // Of Study::finished().
  std::vector<int64_t> begins_;  // How many had ended when each generation but the first began.
  std::unordered_map<int64_t, int64_t> counted_;  // Trials and where they ended.
};

/// The first loss of a trial that counts: a pruned one's is that of its last report. NaN is
/// infinite.
double loss_of(const Trial& trial);

}  // namespace gallop::tune
