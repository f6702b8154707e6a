#pragma once

#include <cstddef>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// Tracks changes of a study without scanning all trials each time.
class TrialChanges {
 public:
  /// Calls `take` with each trial that may have reported, ended or been requeued since the last
  /// call, possibly more than once.
  template <typename Take>
  void each(const Study& study, const Take& take) {
    const auto& trials = study.trials();
    const auto& finished = study.finished();
    const auto& requeued = study.requeued();
    while (finished_ < finished.size()) take(trials[static_cast<size_t>(finished[finished_++])]);
    while (requeued_ < requeued.size()) take(trials[static_cast<size_t>(requeued[requeued_++])]);
    for (const int64_t number : study.running()) take(trials[static_cast<size_t>(number)]);
  }

 private:
  size_t finished_ = 0, requeued_ = 0;
};

}  // namespace gallop::tune
