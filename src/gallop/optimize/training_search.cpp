#include "gallop/optimize/training_search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::optimize {

namespace {

constexpr double kReferenceShare =
    0.35;                              // Fraction of what is left, for the trainings of the target.
constexpr double kLeastEpochs = 0.02;  // Fraction of the epochs of the recipe.
// A change of the training that is this much faster need not have a better metric. A larger batch
// must be.
constexpr double kFaster = 1.05;

class TrainingSearch {
 public:
  explicit TrainingSearch(SearchState& state) : state_(state) {}

  void run() {
    // Without a kept change, the speed of the recipe is known from the bases of comparisons.
    for (const Trial& trial : state_.report.trials) {
      if (!trial.comparison || trial.comparison->base.samples_per_second <= 0) continue;
      state_.samples_per_second =
          std::max(state_.samples_per_second, trial.comparison->base.samples_per_second);
      if (trial.verdict == Verdict::kKept) {
        state_.samples_per_second =
            std::max(state_.samples_per_second, trial.comparison->changed.samples_per_second);
      }
    }
    const double epochs = state_.settings.epochs;
    if (state_.samples_per_second <= 0 || 2 * state_.seconds_of_training(epochs) > state_.left()) {
      state_.report.why_no_training_changes =
          "changes of the training were not tried: " +
          does_not_fit(state_.samples_per_second > 0 ? state_.seconds_of_training(epochs) : 0);
      return;
    }
    const std::vector<TrainingResult> references = train_references(epochs);
    std::vector<double> metrics;
    for (const TrainingResult& run : references) metrics.push_back(run.metric());
    state_.report.target = Trainings{.metrics = metrics}.mean_metric();
    state_.report.plain_runs = summarize(references, epochs);
    noise_ = standard_error(metrics);
    Incumbent incumbent{references.front(), epochs};
    const std::vector<SearchState::Kept> execution = state_.kept;
    try_schedules(incumbent);
    try_batches(incumbent);
    try_optimizers(incumbent);
    try_regularization(incumbent);
    try_resizing(incumbent);
    shorten(incumbent);
    if (!confirm(incumbent)) {
      state_.report.why_no_training_changes =
          "no change of the training reached the target in less time";
      // Also those that a later one has replaced.
      for (Trial& trial : state_.report.trials) {
        if (trial.verdict != Verdict::kKept || trial.change.effect != Effect::kTraining) continue;
        trial.verdict = Verdict::kReverted;
        trial.reason = state_.report.why_no_training_changes;
      }
      state_.kept = execution;
      state_.report.equal_runs.reset();
      state_.report.best_runs = state_.report.plain_runs;
    }
  }

 private:
  // A training that a change of the training is compared with.
  struct Incumbent {
    TrainingResult run;
    double epochs = 0;
  };

  TrainingResult train(double epochs, const std::vector<std::string>& changes = {},
                       int64_t seed = 1) {
    return state_.experiments.train(state_.with_length(with(state_.options(), changes), epochs),
                                    seed);
  }

  // With the seeds 1, 2, ..., up to the first that fails.
  std::vector<TrainingResult> train_all(double epochs, int64_t seeds) {
    std::vector<TrainingResult> runs;
    for (int64_t seed = 1; seed <= seeds; ++seed) {
      runs.push_back(train(epochs, {}, seed));
      if (!runs.back().failure.empty()) break;
    }
    return runs;
  }

  // "a training takes about 1:05, and 0:20 of the budget are left"
  std::string does_not_fit(double seconds) const {
    return fmt::format("a training takes about {}, and {} of the budget are left",
                       format_duration(seconds), format_duration(std::max(0.0, state_.left())));
  }

  bool is_better(double metric, double than, double margin = 0) const {
    return state_.settings.higher_is_better ? metric > than + margin : metric < than - margin;
  }

  Trainings summarize(const std::vector<TrainingResult>& runs, double epochs) const {
    Trainings all{.epochs = epochs};
    for (const TrainingResult& run : runs) {
      const auto reached = run.epochs_to(*state_.report.target, state_.settings.higher_is_better);
      all.metrics.push_back(run.metric());
      all.epochs_to_target += reached.value_or(epochs) / static_cast<double>(runs.size());
      if (reached) ++all.reached;
    }
    return all;
  }

  std::vector<TrainingResult> train_references(double epochs) {
    const double each = state_.seconds_of_training(epochs);
    const auto fit = static_cast<int64_t>(kReferenceShare * state_.left() / each);
    const int64_t seeds = std::clamp<int64_t>(fit, 1, state_.config.seeds);
    std::vector<TrainingResult> runs = train_all(epochs, seeds);
    if (!runs.back().failure.empty()) throw DataError(runs.back().failure);
    return runs;
  }

  // Trains with a change for so many epochs, and keeps it if the final metric is better, or as good
  // at a higher speed. `speeds` of changes that have another one.
  void try_by_training(const Change& change, Incumbent& incumbent, double epochs,
                       const std::optional<Comparison>& speeds = std::nullopt) {
    Trial trial{.change = change, .comparison = speeds, .metric_before = incumbent.run.metric()};
    if (state_.seconds_of_training(epochs) > state_.left()) {
      trial.reason = does_not_fit(state_.seconds_of_training(epochs));
      return state_.add(std::move(trial));
    }
    const double before = state_.experiments.seconds();
    TrainingResult run = train(epochs, change.options);
    trial.seconds = state_.experiments.seconds() - before;
    if (!run.failure.empty()) {
      trial.verdict = Verdict::kFailed;
      trial.reason = run.failure;
      return state_.add(std::move(trial));
    }
    trial.metric_after = run.metric();
    const bool is_faster = speeds && speeds->speedup.low > kFaster;
    const bool is_kept = is_faster ? !is_better(incumbent.run.metric(), run.metric(), noise_)
                                   : is_better(run.metric(), incumbent.run.metric(), noise_);
    trial.verdict = is_kept ? Verdict::kKept : Verdict::kRejected;
    if (is_kept) {
      const double speedup = speeds ? speeds->speedup.value : 1;
      const double gain = speedup * gain_in_epochs(incumbent, {run, epochs});
      training_speedup_ *= speedup;
      trial.gain = Estimate{.value = gain, .low = gain, .high = gain, .rounds = 1};
      state_.keep(change);
      state_.settings = state_.experiments.settings(state_.options());
      incumbent = {std::move(run), epochs};
      state_.samples_per_second = speedup < 1
                                      ? state_.samples_per_second * speedup
                                      : std::max(state_.samples_per_second, rate_of(incumbent));
    } else {
      const bool is_noise = is_better(*trial.metric_after, *trial.metric_before);
      trial.reason =
          fmt::format("{} {:.4g} instead of {:.4g}{}", state_.settings.metric, *trial.metric_after,
                      *trial.metric_before, is_noise ? ", no more than noise" : "");
    }
    state_.add(std::move(trial));
  }

  double rate_of(const Incumbent& one) const {
    return one.epochs * static_cast<double>(state_.settings.samples) / one.run.training_seconds;
  }

  // All of them if it does not reach it.
  double epochs_to_target(const Incumbent& one) const {
    return one.run.epochs_to(*state_.report.target, state_.settings.higher_is_better)
        .value_or(one.epochs);
  }

  double gain_in_epochs(const Incumbent& from, const Incumbent& to) const {
    return epochs_to_target(from) / epochs_to_target(to);
  }

  void try_schedules(Incumbent& incumbent) {
    std::optional<double> lr;
    if (!state_.is_over(kLastShare)) lr = state_.experiments.find_lr(state_.options());
    // A schedule is worth most in a shorter training.
    const double epochs = state_.settings.schedule == "constant" ? state_.settings.epochs / 2
                                                                 : state_.settings.epochs;
    for (const Change& change : schedule_changes(state_.settings, lr)) {
      try_by_training(change, incumbent, epochs);
    }
  }

  void try_batches(Incumbent& incumbent) {
    for (const Change& change : batch_changes(state_.settings)) {
      const double before = state_.experiments.seconds();
      if (state_.is_over(kLastShare)) {
        state_.add({.change = change, .reason = "the budget is used up"});
        continue;
      }
      Trial trial{.change = change};
      trial.comparison = state_.compare(state_.options(), with(state_.options(), change.options));
      const Comparison& found = *trial.comparison;
      trial.seconds = state_.experiments.seconds() - before;
      if (found.failure.empty()) {
        trial.change.predicted = batch_prediction(state_.settings, change, found.speedup);
      }
      if (found.failure.empty() && found.speedup.low > kFaster) {
        try_by_training(trial.change, incumbent, incumbent.epochs, found);
        if (state_.report.trials.back().verdict != Verdict::kKept) return;
        continue;
      }
      trial.verdict = found.failure.empty() ? Verdict::kRejected : Verdict::kFailed;
      trial.gain = found.speedup;
      trial.reason = found.failure.empty() ? "not fast enough" : found.failure;
      return state_.add(std::move(trial));
    }
  }

  // Each is trained for the time of the incumbent, but for no more epochs.
  void try_optimizers(Incumbent& incumbent) {
    double lr = kAdamwLr;
    if (tries_adamw(state_.settings) && !state_.is_over(kLastShare)) {
      lr = state_.experiments.find_lr(with(state_.options(), {adamw_option(kAdamwLr)}))
               .value_or(kAdamwLr);
    }
    for (const Change& change : optimizer_changes(state_.settings, lr)) {
      const double seconds = state_.seconds_of_training(incumbent.epochs);
      if (state_.is_over(kLastShare) || seconds > state_.left()) {
        state_.add({.change = change, .reason = does_not_fit(seconds)});
        continue;
      }
      const double before = state_.experiments.seconds();
      const Comparison found =
          state_.compare(state_.options(), with(state_.options(), change.options));
      if (!found.failure.empty()) {
        state_.add({.change = change,
                    .verdict = Verdict::kFailed,
                    .reason = found.failure,
                    .comparison = found,
                    .seconds = state_.experiments.seconds() - before});
        continue;
      }
      const double epochs = incumbent.epochs * std::min(1.0, found.speedup.value);
      try_by_training(change, incumbent, epochs, found);
    }
  }

  void try_regularization(Incumbent& incumbent) {
    for (const Change& change : regularization_changes(state_.settings)) {
      try_by_training(change, incumbent, incumbent.epochs);
    }
  }

  void try_resizing(Incumbent& incumbent) {
    if (!state_.settings.can_resize) return;
    Change change = ProgressiveResizing::change();
    const double seconds = state_.seconds_of_training(incumbent.epochs);
    if (state_.is_over(kLastShare) || seconds > state_.left()) {
      return state_.add({.change = std::move(change), .reason = does_not_fit(seconds)});
    }
    const double before = state_.experiments.seconds();
    Comparison found = state_.experiments.compare(
        state_.options(), with(state_.options(), ProgressiveResizing::at_half_size()));
    if (found.failure.empty()) {
      change.predicted = ProgressiveResizing::prediction(found.speedup);
      const double at_half_size = found.speedup.value;
      found.speedup = ProgressiveResizing::speedup(found.speedup);
      state_.resizing_speedup = found.speedup.value;
      scale(found.changed, state_.resizing_speedup / at_half_size);
      if (found.energy_gain) scale(*found.energy_gain, state_.resizing_speedup / at_half_size);
      if (found.speedup.low > kFaster) {
        return try_by_training(change, incumbent, incumbent.epochs, found);
      }
    }
    const bool is_failure = !found.failure.empty();
    state_.add({.change = std::move(change),
                .verdict = is_failure ? Verdict::kFailed : Verdict::kRejected,
                .reason = is_failure ? found.failure : "not fast enough",
                .comparison = found,
                .gain = is_failure ? std::nullopt : std::optional(found.speedup),
                .seconds = state_.experiments.seconds() - before});
  }

  bool reaches_target(const TrainingResult& run) const {
    return run.failure.empty() && !is_better(*state_.report.target, run.metric());
  }

  // The shortest training that still reaches the target; a longer one if none did so far.
  void shorten(Incumbent& incumbent) {
    const double before = state_.experiments.seconds(), most = state_.report.plain.epochs;
    double epochs = incumbent.epochs;
    Incumbent best = incumbent;
    bool reaches = reaches_target(incumbent.run);
    while (true) {
      const double next = reaches ? epochs * kShorter : std::min(most, epochs / kShorter);
      const bool is_end = reaches ? next < kLeastEpochs * most : epochs >= most;
      if (is_end || state_.seconds_of_training(next) > state_.left()) break;
      TrainingResult run = train(next);
      const bool reached = reaches_target(run);
      epochs = next;
      if (reached) best = {std::move(run), next};
      if (reached != reaches) break;
    }
    if (best.epochs == state_.settings.epochs) return;
    unshortened_ = incumbent;
    const Change change = shortened(best.epochs);
    const double gain = gain_in_epochs(incumbent, best);
    state_.keep(change);
    state_.add({.change = change,
                .verdict = Verdict::kKept,
                .gain = Estimate{.value = gain, .low = gain, .high = gain, .rounds = 1},
                .metric_before = incumbent.run.metric(),
                .metric_after = best.run.metric(),
                .seconds = state_.experiments.seconds() - before});
    state_.settings = state_.experiments.settings(state_.options());
    incumbent = std::move(best);
  }

  // Whether the incumbent reaches the target in mean over the seeds, and faster; lengthens it if
  // it does not reach it.
  bool confirm(Incumbent& incumbent) {
    const auto seeds = static_cast<int64_t>(state_.report.plain_runs->metrics.size());
    double epochs = incumbent.epochs;
    while (true) {
      const std::vector<TrainingResult> runs = train_all(epochs, seeds);
      if (!runs.back().failure.empty()) return false;
      const Trainings all = summarize(runs, epochs);
      if (!is_better(*state_.report.target, all.mean_metric())) {
        set_length(epochs);
        state_.report.best_runs = all;
        compare_at_equal_length(seeds);
        return all.epochs_to_target <
               state_.report.plain_runs->epochs_to_target * training_speedup_;
      }
      const double longer = std::min(state_.report.plain.epochs, epochs / kShorter);
      if (epochs >= state_.report.plain.epochs ||
          static_cast<double>(seeds) * state_.seconds_of_training(longer) > state_.left()) {
        return false;
      }
      epochs = longer;
    }
  }

  Change shortened(double epochs) const {
    Change change = length_change(state_.report.plain, epochs);
    change.predicted = length_prediction(change, epochs_to_target(unshortened_) / epochs,
                                         unshortened_.epochs / epochs);
    return change;
  }

  void set_length(double epochs) {
    for (SearchState::Kept& one : state_.kept) {
      if (one.change.subject != "length") continue;
      one.change = shortened(epochs);
      state_.report.trials[one.trial].change = one.change;
    }
  }

  void compare_at_equal_length(int64_t seeds) {
    const double epochs = state_.report.plain.epochs;
    if (state_.report.best_runs->epochs == epochs) {
      state_.report.equal_runs = state_.report.best_runs;
      return;
    }
    if (static_cast<double>(seeds) * state_.seconds_of_training(epochs) > state_.left()) return;
    const std::vector<TrainingResult> runs = train_all(epochs, seeds);
    if (!runs.back().failure.empty()) return;
    state_.report.equal_runs = summarize(runs, epochs);
  }

  SearchState& state_;
  Incumbent unshortened_;        // The best recipe before its length was changed.
  double noise_ = 0;             // Standard error of the target.
  double training_speedup_ = 1;  // Speedup of kept changes of the training, such as larger batches.
};

}  // namespace

void try_training(SearchState& state) { TrainingSearch(state).run(); }

}  // namespace gallop::optimize
