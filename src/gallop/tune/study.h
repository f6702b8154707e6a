#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/tune/event.h"
#include "gallop/tune/space.h"
#include "gallop/tune/trial.h"

namespace gallop::tune {

/// What is to be small or large.
struct Objective {
  std::string metric;
  bool maximize = false;
  std::optional<double> target{};  ///< No trial begins once one is as good.

  /// A metric as a loss, and a loss as a metric.
  double signed_value(double value) const { return maximize ? -value : value; }
  /// Whether a loss is as good as the target, where there is one.
  bool is_reached_by(double loss) const { return target && loss <= signed_value(*target); }
};

/// A metric that must not be above a limit.
struct Limit {
  std::string metric;
  double most = 0;
};

/// What a study is; it does not change while it lasts.
struct StudySettings {
  std::string name;
  uint64_t seed = 1;
  Space space{};
  std::vector<Objective> objectives{};  ///< At least one.
  std::vector<Limit> limits{};
  std::string sampler = "{}";  ///< As written, JSON: which one, and its options.
  std::string pruner = "{}";
  std::string run = "{}";         ///< What a trial is, JSON; the workers' business.
  int64_t trials = 100;           ///< How many are to be finished.
  int32_t attempts = 3;           ///< How often a trial is started whose workers vanish.
  int32_t failures = 10;          ///< So many trials in a row that fail stop the study.
  double heartbeat_seconds = 10;  ///< A worker is taken for gone after two without a sign of it.
};

/// Throws UsageError in the name of `who`, as "pruner median", where there are several objectives.
void check_one_objective(const StudySettings& settings, const char* who);

std::string to_json(const StudySettings& settings);
/// The inverse. Throws DataError where the text is no study, or one of a newer version.
StudySettings parse_settings(std::string_view text);

/// All that is known of a study: its settings, and what its events say.
class Study {
 public:
  explicit Study(StudySettings settings) : settings_(std::move(settings)) {}

  const StudySettings& settings() const { return settings_; }
  const Space& space() const { return settings_.space; }
  uint64_t seed() const { return settings_.seed; }
  size_t objectives() const { return settings_.objectives.size(); }

  /// By number.
  const std::vector<Trial>& trials() const { return trials_; }
  /// Numbers of those that are finished, in the order in which they finished. A trial that goes on
  /// later stands here again at its new end.
  const std::vector<int64_t>& finished() const { return finished_; }
  /// Numbers of those that had been started and came to wait again, in the order in which they did.
  const std::vector<int64_t>& requeued() const { return requeued_; }
  const std::set<int64_t>& running() const { return running_; }
  const std::set<int64_t>& waiting() const { return waiting_; }
  /// How many are in this state.
  int64_t count(TrialState state) const;
  /// How many are complete, pruned or failed.
  int64_t finished_trials() const;
  /// Steps of training that trials did not take, as others had taken them.
  int64_t shared_steps() const;
  /// How many have failed since one did not.
  int32_t failures_in_a_row() const { return failures_in_a_row_; }
  /// Whether no trial is to be started any more, for now.
  bool is_stopped() const { return stopped_; }
  /// Why, where that was said.
  const std::string& stop_reason() const { return stop_reason_; }
  /// How many trials are to be finished, what was added later included.
  int64_t wanted_trials() const { return settings_.trials + more_trials_; }
  /// Whether so many are.
  bool has_all_trials() const { return finished_trials() >= wanted_trials(); }
  /// How many of them are those of an earlier study.
  int64_t taken_over() const { return taken_over_; }

  /// The next thing that happened. Throws DataError where it cannot have: an unknown trial, one
  /// that is started while it runs, an end of what does not run.
  void apply(const Event& event);

  /// The complete trial with the smallest first loss among those without violations; nothing
  /// where there is none.
  std::optional<int64_t> best() const { return best_; }
  /// Numbers of complete trials without violations and NaN of which no other is better in one
  /// objective and as good in all; the first of several with equal losses.
  std::vector<int64_t> pareto_front() const;
  /// Whether a complete trial without violations is as good as each target, of which there is one
  /// at least.
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

/// Whether losses, one for each objective, are as good as each target, of which there is one at
/// least.
bool reach_targets(const std::vector<Objective>& objectives, const std::vector<double>& losses);

}  // namespace gallop::tune
