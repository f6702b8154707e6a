#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gallop/tune/pruners/trial_changes.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// Losses of the trials of one bracket at the steps at which they are compared: `firsts`, which
/// rise, and then the last of these times `factor`, `factor`^2, and so on without an end.
///
/// A trial passes a rung with its first report at or after the rung's step that is not NaN.
class Rungs {
 public:
  /// Loss and number of a trial.
  using Entry = std::pair<double, int64_t>;

  Rungs(std::vector<int64_t> firsts, int64_t factor)
      : firsts_(std::move(firsts)), factor_(factor) {}
  Rungs(int64_t first, int64_t factor) : Rungs(std::vector{first}, factor) {}

  /// The largest number where it is larger.
  int64_t step(size_t rung) const;
  /// Takes in what a trial has reported since the last call.
  void follow(const Trial& trial);

  /// Whether a trial that was followed, with reports, is to end just after its last one. It goes on
  /// at a rung where it is among the best `1 / factor`, or the best of fewer than `factor`. Up to
  /// `bootstrap_count` trials end at each rung whatever they are. One whose loss is NaN at a rung
  /// ends there.
  bool ends(const Trial& trial, int64_t bootstrap_count) const;

  /// How many rungs a trial that was followed has passed.
  size_t passed(int64_t trial) const { return passages(trial).size(); }
  /// The first of the rungs that it passed with its last report; passed() where that passed none.
  size_t first_of_last_report(const Trial& trial) const;
  /// Its loss where it passed.
  double loss(int64_t trial, size_t rung) const { return passages(trial)[rung].loss; }
  /// Of all trials that have passed, the best first; those with equal losses by number.
  const std::vector<Entry>& entries(size_t rung) const { return rungs_[rung]; }

 private:
  struct Passage {
    size_t report;  // Its index.
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
  /// Those of a trial's bracket; of the last one where there are fewer by now.
  const Rungs& of(const Trial& trial) const { return rungs_[index(trial)]; }

 private:
  size_t index(const Trial& trial) const;

  TrialChanges changes_;
  std::vector<Rungs> rungs_;
};

/// Last step of the trial that was complete first, of those with reports; nothing where there is
/// none yet.
std::optional<int64_t> first_complete_length(const Study& study);

}  // namespace gallop::tune
