#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/tune/event.h"
#include "gallop/tune/space.h"
#include "gallop/tune/trial.h"

namespace gallop::tune {

/// A metric to minimize or maximize.
struct Objective {
  std::string metric;
  bool maximize = false;
  std::optional<double> target{};  ///< No trial is started once one reaches it.

  /// Converts a metric to a loss, and a loss to a metric. NaN has no sign.
  double signed_value(double value) const {
    return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN()
                             : (maximize ? -value : value);
  }
  /// Whether a loss reaches the target, if there is one.
  bool is_reached_by(double loss) const { return target && loss <= signed_value(*target); }
};

/// A metric with an upper limit.
struct Limit {
  std::string metric;
  double most = 0;
};

/// The immutable settings of a study.
struct StudySettings {
  std::string name;
  uint64_t seed = 1;
  Space space{};
  std::vector<Objective> objectives{};  ///< At least one.
  std::vector<Limit> limits{};
  std::string sampler = "{}";  ///< JSON as written: the name and its options.
  std::string pruner = "{}";
  std::string run = "{}";         ///< JSON that describes a trial; interpreted by the workers.
  int64_t trials = 100;           ///< Number of trials to finish.
  int32_t attempts = 3;           ///< Maximum attempts at a trial whose workers vanish.
  int32_t failures = 10;          ///< Number of consecutive failures that stops the study.
  double heartbeat_seconds = 10;  ///< A worker expires after two intervals without a heartbeat.
};

/// Throws UsageError if there are several objectives; `who`, such as "pruner median", prefixes the
/// message.
void check_one_objective(const StudySettings& settings, const char* who);

std::string to_json(const StudySettings& settings);
/// Parses settings. Throws DataError if the text is invalid, or of a newer version.
StudySettings parse_settings(std::string_view text);

/// The state of a study: its settings, and a fold over its events.
class Study {
 public:
  explicit Study(StudySettings settings) : settings_(std::move(settings)) {}

  const StudySettings& settings() const { return settings_; }
  const Space& space() const { return settings_.space; }
  uint64_t seed() const { return settings_.seed; }
  size_t objectives() const { return settings_.objectives.size(); }

  /// All trials, by number.
  const std::vector<Trial>& trials() const { return trials_; }
  /// Numbers of the finished trials, in the order in which they finished. A trial that is resumed
  /// later is listed again at its new end.
  const std::vector<int64_t>& finished() const { return finished_; }
  /// Numbers of trials that were requeued after a start, in that order.
  const std::vector<int64_t>& requeued() const { return requeued_; }
  const std::set<int64_t>& running() const { return running_; }
  const std::set<int64_t>& waiting() const { return waiting_; }
  /// The number of trials in this state.
  int64_t count(TrialState state) const;
  /// The number of trials that are complete, pruned or failed.
  int64_t finished_trials() const;
  /// Training steps that were saved because other trials had trained them.
  int64_t shared_steps() const;
  /// The number of consecutive failures.
  int32_t failures_in_a_row() const { return failures_in_a_row_; }
  /// Whether the study is stopped.
  bool is_stopped() const { return stopped_; }
  /// The reason of the stop, if given.
  const std::string& stop_reason() const { return stop_reason_; }
  /// The number of trials to finish, including those added later.
  int64_t wanted_trials() const { return settings_.trials + more_trials_; }
  /// Whether that number is reached.
  bool has_all_trials() const { return finished_trials() >= wanted_trials(); }
  /// The number of trials taken over from an earlier study.
  int64_t taken_over() const { return taken_over_; }

  /// Applies the next event. Throws DataError if it is impossible: an unknown trial, a start of a
  /// running trial, an end of a trial that is not running.
  void apply(const Event& event);

  /// The complete, feasible trial with the smallest first loss; nothing if there is none.
  std::optional<int64_t> best() const { return best_; }
  /// The Pareto front: numbers of the complete, feasible trials without NaN that no other one
  /// dominates; the first of several with equal losses.
  std::vector<int64_t> pareto_front() const;
  /// Whether a complete, feasible trial reaches all targets, of which there must be at least one.
  bool has_reached_targets() const;

 private:
  Trial& at(int64_t number);
  void queue(const Event& event);
  void start(const Event& event);
  void report(const Event& event);
  void finish(const Event& event);
  void share(const Event& event);
  void requeue(const Event& event);
  void weigh(const Trial& trial);

  StudySettings settings_;
  std::vector<Trial> trials_;
  std::vector<int64_t> finished_, requeued_;
  std::set<int64_t> running_, waiting_;
  std::optional<int64_t> best_;
  int32_t failures_in_a_row_ = 0;
  int64_t more_trials_ = 0, taken_over_ = 0;
  bool stopped_ = false;
  std::string stop_reason_;
};

/// Whether all violations are at most 0.
bool is_feasible(const Trial& trial);

/// Whether losses, one per objective, reach all targets, of which there must be at least one.
bool reach_targets(const std::vector<Objective>& objectives, const std::vector<double>& losses);

}  // namespace gallop::tune
