#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gallop/tune/pruners/trial_changes.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// The losses of one bracket's trials at its rungs, the steps at which trials are compared:
/// `firsts`, ascending, and then the last of these times `factor`, `factor`^2, and so on without
/// limit.
///
/// A trial passes a rung with its first report at or after the rung's step that is not NaN.
class Rungs {
 public:
  /// Loss and number of a trial.
  using Entry = std::pair<double, int64_t>;

  Rungs(std::vector<int64_t> firsts, int64_t factor)
      : firsts_(std::move(firsts)), factor_(factor) {}
  Rungs(int64_t first, int64_t factor) : Rungs(std::vector{first}, factor) {}

  /// The step of a rung, limited to the maximum of int64_t.
  int64_t step(size_t rung) const;
  /// Processes the reports of a trial since the last call.
  void follow(const Trial& trial);

  /// Whether to stop a followed trial just after its last report. It continues at a rung if it is
  /// among the best `1 / factor`, or the best of fewer than `factor`. The first `bootstrap_count`
  /// trials end at each rung in any case. A trial whose loss is NaN at a rung ends there.
  bool ends(const Trial& trial, int64_t bootstrap_count) const;

  /// The number of rungs that a followed trial has passed.
  size_t passed(int64_t trial) const { return passages(trial).size(); }
  /// The first rung passed by its last report; passed() if that passed none.
  size_t first_of_last_report(const Trial& trial) const;
  /// The loss with which it passed a rung.
  double loss(int64_t trial, size_t rung) const { return passages(trial)[rung].loss; }
  /// All trials that passed the rung, best first; ties by number.
  const std::vector<Entry>& entries(size_t rung) const { return rungs_[rung]; }

 private:
  struct Passage {
    size_t report;  // Index of the report.
    double loss;
  };
  struct Followed {
    size_t reports = 0;
    int32_t rewinds = 0;
    std::vector<Passage> passages{};  // By rung.
  };

  const std::vector<Passage>& passages(int64_t trial) const { return trials_.at(trial).passages; }
  void pass(const Trial& trial, Followed& followed);
  void forget(const Trial& trial, Followed& followed);

  std::vector<int64_t> firsts_;
  int64_t factor_;
  std::vector<std::vector<Entry>> rungs_;
  std::unordered_map<int64_t, Followed> trials_;
};

/// The rungs of each bracket of a study.
class Brackets {
 public:
  explicit Brackets(std::vector<Rungs> rungs) : rungs_(std::move(rungs)) {}

  void follow(const Study& study);
  /// The rungs of a trial's bracket; of the last one if there are fewer brackets now.
  const Rungs& of(const Trial& trial) const { return rungs_[index(trial)]; }

 private:
  size_t index(const Trial& trial) const;

  TrialChanges changes_;
  std::vector<Rungs> rungs_;
};

/// The last step of the first complete trial with reports; nothing if there is none yet.
std::optional<int64_t> first_complete_length(const Study& study);

}  // namespace gallop::tune
