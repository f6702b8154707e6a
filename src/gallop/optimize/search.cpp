#include "gallop/optimize/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::optimize {

namespace {

// Shares of the budget after which no further experiment of a stage begins.
constexpr double kExecutionShare = 0.4;
constexpr double kLastShare = 0.85;
constexpr double kReferenceShare = 0.35;  // Of what is left, for the trainings of the target.
// What a training takes besides its steps: start-up, compilation, evaluations.
constexpr double kOverhead = 1.2;
// A retry of a rejected change needs such a predicted speed-up.
constexpr double kRetry = 1.05;
// A shorter training has this many of the epochs of the one before.
constexpr double kShorter = 0.7;
constexpr double kLeastEpochs = 0.02;  // Of those of the recipe.
// A change of the training that is this much faster need not have a better metric. A larger batch
// must be.
constexpr double kFaster = 1.05;

std::string key_of(const std::vector<std::string>& options) {
  std::vector<std::string> sorted = options;
  std::sort(sorted.begin(), sorted.end());
  return fmt::format("{}", fmt::join(sorted, " "));
}

class Search {
 public:
  Search(Experiments& experiments, const SearchConfig& config, const Progress& progress)
      : experiments_(experiments), config_(config), progress_(progress) {}

  Report run() {
    report_ = {.goal = config_.goal,
               .recipe = config_.recipe,
               .given = config_.given,
               .budget_seconds = config_.budget_seconds,
               .price_per_hour = config_.price_per_hour};
    report_.plain = experiments_.settings(config_.given);
    settings_ = report_.plain;
    try_execution();
    if (config_.goal == Goal::kTimeToAccuracy) try_training();
    if (config_.ablate) ablate();
    report_.options = options();
    if (!kept_.empty()) {
      report_.total = compare(config_.given, options());
      if (!report_.total->failure.empty()) throw DataError(report_.total->failure);
    }
    report_.best = experiments_.settings(report_.options);
    report_.seconds = experiments_.seconds();
    return std::move(report_);
  }

 private:
  // A change that is in the recipe, and its line in the report.
  struct Kept {
    Change change;
    size_t trial = 0;
  };
  // A training that a change of the training is compared with.
  struct Incumbent {
    TrainedRun run;
    double epochs = 0;
  };

  std::vector<std::string> options(std::optional<size_t> without = std::nullopt) const {
    std::vector<std::string> all = config_.given;
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (i != without) all = with(std::move(all), kept_[i].change.options);
    }
    return all;
  }

  double left() const { return config_.budget_seconds - experiments_.seconds(); }
  bool is_over(double share) const {
    return experiments_.seconds() > share * config_.budget_seconds;
  }

  void add(Trial trial) {
    report_.trials.push_back(std::move(trial));
    report_.options = options();
    report_.seconds = experiments_.seconds();
    progress_(report_);
  }

  // Replaces an earlier change of the same subject.
  void keep(const Change& change) {
    std::erase_if(kept_, [&](const Kept& one) {
      if (one.change.subject != change.subject) return false;
      report_.trials[one.trial].reason = "then replaced by " + change.name;
      return true;
    });
    kept_.push_back({change, report_.trials.size()});
  }

  // Speeds of whole trainings: in the part that is measured, images would have their initial size.
  Comparison compare(const std::vector<std::string>& base,
                     const std::vector<std::string>& changed) {
    using Resizing = ProgressiveResizing;
    Comparison found = experiments_.compare(Resizing::without(base), Resizing::without(changed));
    const auto factor = [&](const std::vector<std::string>& options) {
      return Resizing::is_in(options) ? resizing_speedup_ : 1;
    };
    scale(found.base, factor(base));
    scale(found.changed, factor(changed));
    const double ratio = factor(changed) / factor(base);
    scale(found.speedup, ratio);
    if (found.energy_gain) scale(*found.energy_gain, ratio);
    return found;
  }

  static void scale(Speed& speed, double factor) {
    speed.samples_per_second *= factor;
    speed.joules_per_sample /= factor;
  }
  static void scale(Estimate& estimate, double factor) {
    estimate.value *= factor;
    estimate.low *= factor;
    estimate.high *= factor;
  }

  void try_execution() {
    std::vector<Prediction> predictions = experiments_.predict(options());
    // By change: the options that it was tried with.
    std::map<std::string, std::set<std::string>> tried;
    while (true) {
      std::optional<Change> next;
      for (const Change& change : execution_changes(settings_, predictions, config_.goal)) {
        std::set<std::string>& bases = tried[key_of(change.options)];
        const bool may_help = change.predicted && change.predicted->low > kRetry;
        if (!bases.empty() && (!may_help || bases.size() > 1)) continue;
        if (!bases.insert(key_of(options())).second) continue;
        next = change;
        break;
      }
      if (!next) return;
      const double share = config_.goal == Goal::kTimeToAccuracy ? kExecutionShare : kLastShare;
      if (is_over(share)) {
        add({.change = *next, .reason = "the budget is used up"});
        continue;
      }
      if (try_change(*next)) {
        settings_ = experiments_.settings(options());
        if (!is_over(share)) predictions = experiments_.predict(options());
      }
    }
  }

  // By speed.
  bool try_change(const Change& change) {
    Trial trial{.change = change};
    const double before = experiments_.seconds();
    trial.comparison = compare(options(), with(options(), change.options));
    trial.seconds = experiments_.seconds() - before;
    judge(trial);
    const bool is_kept = trial.verdict == Verdict::kKept;
    if (is_kept) keep(change);
    add(std::move(trial));
    return is_kept;
  }

  void judge(Trial& trial) const {
    const Comparison& found = *trial.comparison;
    trial.verdict = Verdict::kRejected;
    if (!found.failure.empty()) {
      trial.verdict = Verdict::kFailed;
      trial.reason = found.failure;
      return;
    }
    if (config_.goal == Goal::kEnergy && !found.energy_gain) {
      throw UsageError(
          "the energy of these trainings could not be measured: neither energy nor CPU time is "
          "readable; choose another --goal");
    }
    trial.gain = gain_of(found, config_.goal);
    const bool is_slower_than_it_saves =
        config_.goal == Goal::kMemory && found.speedup.value * trial.gain->value < 1;
    if (found.loss_change && found.loss_change->low > config_.tolerated_loss) {
      trial.reason = fmt::format("the loss rises by {:.1f} % over the same steps",
                                 100 * found.loss_change->value);
    } else if (trial.gain->high < 1) {
      trial.reason = "worse";
    } else if (trial.gain->low < config_.worthwhile) {
      trial.reason = trial.gain->value < config_.worthwhile ? "no gain" : "no certain gain";
    } else if (is_slower_than_it_saves) {
      trial.reason =
          fmt::format("costs more time ({:.2f}x) than it saves memory", 1 / found.speedup.value);
    } else {
      trial.verdict = Verdict::kKept;
    }
  }

  double seconds_of_training(double epochs) const {
    return kOverhead * epochs * static_cast<double>(settings_.samples) / samples_per_second_;
  }

  std::vector<std::string> with_length(std::vector<std::string> all, double epochs) const {
    return with(std::move(all), length_change(report_.plain, epochs).options);
  }

  TrainedRun train(double epochs, const std::vector<std::string>& changes = {}, int64_t seed = 1) {
    return experiments_.train(with_length(with(options(), changes), epochs), seed);
  }

  // With the seeds 1, 2, ..., up to the first that fails.
  std::vector<TrainedRun> train_all(double epochs, int64_t seeds) {
    std::vector<TrainedRun> runs;
    for (int64_t seed = 1; seed <= seeds; ++seed) {
      runs.push_back(train(epochs, {}, seed));
      if (!runs.back().failure.empty()) break;
    }
    return runs;
  }

  // "a training takes about 1:05, and 0:20 of the budget are left"
  std::string does_not_fit(double seconds) const {
    return fmt::format("a training takes about {}, and {} of the budget are left",
                       format_duration(seconds), format_duration(std::max(0.0, left())));
  }

  bool is_better(double metric, double than, double margin = 0) const {
    return settings_.higher_is_better ? metric > than + margin : metric < than - margin;
  }

  Trainings summarize(const std::vector<TrainedRun>& runs, double epochs) const {
    Trainings all{.epochs = epochs};
    for (const TrainedRun& run : runs) {
      const auto reached = run.epochs_to(*report_.target, settings_.higher_is_better);
      all.metrics.push_back(run.metric());
      all.epochs_to_target += reached.value_or(epochs) / static_cast<double>(runs.size());
      if (reached) ++all.reached;
    }
    return all;
  }

  void try_training() {
    // Without a kept change, the speed of the recipe is known from the bases of comparisons.
    for (const Trial& trial : report_.trials) {
      if (!trial.comparison || trial.comparison->base.samples_per_second <= 0) continue;
      samples_per_second_ =
          std::max(samples_per_second_, trial.comparison->base.samples_per_second);
      if (trial.verdict == Verdict::kKept) {
        samples_per_second_ =
            std::max(samples_per_second_, trial.comparison->changed.samples_per_second);
      }
    }
    const double epochs = settings_.epochs;
    if (samples_per_second_ <= 0 || 2 * seconds_of_training(epochs) > left()) {
      report_.why_no_training_changes =
          "changes of the training were not tried: " +
          does_not_fit(samples_per_second_ > 0 ? seconds_of_training(epochs) : 0);
      return;
    }
    const std::vector<TrainedRun> references = train_references(epochs);
    std::vector<double> metrics;
    for (const TrainedRun& run : references) metrics.push_back(run.metric());
    report_.target = Trainings{.metrics = metrics}.mean_metric();
    report_.plain_runs = summarize(references, epochs);
    noise_ = standard_error(metrics);
    Incumbent incumbent{references.front(), epochs};
    const std::vector<Kept> execution = kept_;
    try_schedules(incumbent);
    try_batches(incumbent);
    try_optimizers(incumbent);
    try_regularization(incumbent);
    try_resizing(incumbent);
    shorten(incumbent);
    if (!confirm(incumbent)) {
      report_.why_no_training_changes = "no change of the training reached the target in less time";
      for (const Kept& one : kept_) {
        if (one.change.effect != Effect::kTraining) continue;
        report_.trials[one.trial].verdict = Verdict::kReverted;
        report_.trials[one.trial].reason = report_.why_no_training_changes;
      }
      kept_ = execution;
      report_.best_runs = report_.plain_runs;
    }
  }

  std::vector<TrainedRun> train_references(double epochs) {
    const double each = seconds_of_training(epochs);
    const auto fit = static_cast<int64_t>(kReferenceShare * left() / each);
    const int64_t seeds = std::clamp<int64_t>(fit, 1, config_.seeds);
    std::vector<TrainedRun> runs = train_all(epochs, seeds);
    if (!runs.back().failure.empty()) throw DataError(runs.back().failure);
    return runs;
  }

  // Trains with a change for so many epochs, and keeps it if the final metric is better, or as good
  // at a higher speed. `speeds` of changes that have another one.
  void try_by_training(const Change& change, Incumbent& incumbent, double epochs,
                       const std::optional<Comparison>& speeds = std::nullopt) {
    Trial trial{.change = change, .comparison = speeds, .metric_before = incumbent.run.metric()};
    if (seconds_of_training(epochs) > left()) {
      trial.reason = does_not_fit(seconds_of_training(epochs));
      return add(std::move(trial));
    }
    const double before = experiments_.seconds();
    TrainedRun run = train(epochs, change.options);
    trial.seconds = experiments_.seconds() - before;
    if (!run.failure.empty()) {
      trial.verdict = Verdict::kFailed;
      trial.reason = run.failure;
      return add(std::move(trial));
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
      keep(change);
      settings_ = experiments_.settings(options());
      incumbent = {std::move(run), epochs};
      samples_per_second_ = speedup < 1 ? samples_per_second_ * speedup
                                        : std::max(samples_per_second_, rate_of(incumbent));
    } else {
      const bool is_noise = is_better(*trial.metric_after, *trial.metric_before);
      trial.reason =
          fmt::format("{} {:.4g} instead of {:.4g}{}", settings_.metric, *trial.metric_after,
                      *trial.metric_before, is_noise ? ", no more than noise" : "");
    }
    add(std::move(trial));
  }

  double rate_of(const Incumbent& one) const {
    return one.epochs * static_cast<double>(settings_.samples) / one.run.training_seconds;
  }

  // All of them if it does not reach it.
  double epochs_to_target(const Incumbent& one) const {
    return one.run.epochs_to(*report_.target, settings_.higher_is_better).value_or(one.epochs);
  }

  double gain_in_epochs(const Incumbent& from, const Incumbent& to) const {
    return epochs_to_target(from) / epochs_to_target(to);
  }

  void try_schedules(Incumbent& incumbent) {
    std::optional<double> lr;
    if (!is_over(kLastShare)) lr = experiments_.find_lr(options());
    // A schedule is worth most in a shorter training.
    const double epochs =
        settings_.schedule == "constant" ? settings_.epochs / 2 : settings_.epochs;
    for (const Change& change : schedule_changes(settings_, lr)) {
      try_by_training(change, incumbent, epochs);
    }
  }

  void try_batches(Incumbent& incumbent) {
    for (const Change& change : batch_changes(settings_)) {
      const double before = experiments_.seconds();
      if (is_over(kLastShare)) {
        add({.change = change, .reason = "the budget is used up"});
        continue;
      }
      Trial trial{.change = change};
      trial.comparison = compare(options(), with(options(), change.options));
      const Comparison& found = *trial.comparison;
      trial.seconds = experiments_.seconds() - before;
      if (found.failure.empty()) {
        trial.change.predicted = batch_prediction(settings_, change, found.speedup);
      }
      if (found.failure.empty() && found.speedup.low > kFaster) {
        try_by_training(trial.change, incumbent, incumbent.epochs, found);
        if (report_.trials.back().verdict != Verdict::kKept) return;
        continue;
      }
      trial.verdict = found.failure.empty() ? Verdict::kRejected : Verdict::kFailed;
      trial.gain = found.speedup;
      trial.reason = found.failure.empty() ? "not fast enough" : found.failure;
      return add(std::move(trial));
    }
  }

  // Each is trained for the time of the incumbent, but for no more epochs.
  void try_optimizers(Incumbent& incumbent) {
    double lr = kAdamwLr;
    if (tries_adamw(settings_) && !is_over(kLastShare)) {
      lr = experiments_.find_lr(with(options(), {adamw_option(kAdamwLr)})).value_or(kAdamwLr);
    }
    for (const Change& change : optimizer_changes(settings_, lr)) {
      const double seconds = seconds_of_training(incumbent.epochs);
      if (is_over(kLastShare) || seconds > left()) {
        add({.change = change, .reason = does_not_fit(seconds)});
        continue;
      }
      const double before = experiments_.seconds();
      const Comparison found = compare(options(), with(options(), change.options));
      if (!found.failure.empty()) {
        add({.change = change,
             .verdict = Verdict::kFailed,
             .reason = found.failure,
             .comparison = found,
             .seconds = experiments_.seconds() - before});
        continue;
      }
      const double epochs = incumbent.epochs * std::min(1.0, found.speedup.value);
      try_by_training(change, incumbent, epochs, found);
    }
  }

  void try_regularization(Incumbent& incumbent) {
    for (const Change& change : regularization_changes(settings_)) {
      try_by_training(change, incumbent, incumbent.epochs);
    }
  }

  void try_resizing(Incumbent& incumbent) {
    if (!settings_.can_resize) return;
    Change change = ProgressiveResizing::change();
    const double seconds = seconds_of_training(incumbent.epochs);
    if (is_over(kLastShare) || seconds > left()) {
      return add({.change = std::move(change), .reason = does_not_fit(seconds)});
    }
    const double before = experiments_.seconds();
    Comparison found =
        experiments_.compare(options(), with(options(), ProgressiveResizing::at_half_size()));
    if (found.failure.empty()) {
      change.predicted = ProgressiveResizing::prediction(found.speedup);
      const double at_half_size = found.speedup.value;
      found.speedup = ProgressiveResizing::speedup(found.speedup);
      resizing_speedup_ = found.speedup.value;
      scale(found.changed, resizing_speedup_ / at_half_size);
      if (found.energy_gain) scale(*found.energy_gain, resizing_speedup_ / at_half_size);
      if (found.speedup.low > kFaster) {
        return try_by_training(change, incumbent, incumbent.epochs, found);
      }
    }
    const bool is_failure = !found.failure.empty();
    add({.change = std::move(change),
         .verdict = is_failure ? Verdict::kFailed : Verdict::kRejected,
         .reason = is_failure ? found.failure : "not fast enough",
         .comparison = found,
         .gain = is_failure ? std::nullopt : std::optional(found.speedup),
         .seconds = experiments_.seconds() - before});
  }

  bool reaches_target(const TrainedRun& run) const {
    return run.failure.empty() && !is_better(*report_.target, run.metric());
  }

  // The shortest training that still reaches the target; a longer one if none did so far.
  void shorten(Incumbent& incumbent) {
    const double before = experiments_.seconds(), most = report_.plain.epochs;
    double epochs = incumbent.epochs;
    Incumbent best = incumbent;
    bool reaches = reaches_target(incumbent.run);
    while (true) {
      const double next = reaches ? epochs * kShorter : std::min(most, epochs / kShorter);
      const bool is_end = reaches ? next < kLeastEpochs * most : epochs >= most;
      if (is_end || seconds_of_training(next) > left()) break;
      TrainedRun run = train(next);
      const bool reached = reaches_target(run);
      epochs = next;
      if (reached) best = {std::move(run), next};
      if (reached != reaches) break;
    }
    if (best.epochs == settings_.epochs) return;
    unshortened_ = incumbent;
    const Change change = shortened(best.epochs);
    const double gain = gain_in_epochs(incumbent, best);
    keep(change);
    add({.change = change,
         .verdict = Verdict::kKept,
         .gain = Estimate{.value = gain, .low = gain, .high = gain, .rounds = 1},
         .metric_before = incumbent.run.metric(),
         .metric_after = best.run.metric(),
         .seconds = experiments_.seconds() - before});
    settings_ = experiments_.settings(options());
    incumbent = std::move(best);
  }

  // Whether the incumbent reaches the target in mean over the seeds, and faster; lengthens it if
  // it does not reach it.
  bool confirm(Incumbent& incumbent) {
    const auto seeds = static_cast<int64_t>(report_.plain_runs->metrics.size());
    double epochs = incumbent.epochs;
    while (true) {
      const std::vector<TrainedRun> runs = train_all(epochs, seeds);
      if (!runs.back().failure.empty()) return false;
      const Trainings all = summarize(runs, epochs);
      if (!is_better(*report_.target, all.mean_metric())) {
        set_length(epochs);
        report_.best_runs = all;
        compare_at_equal_length(seeds);
        return all.epochs_to_target < report_.plain_runs->epochs_to_target * training_speedup_;
      }
      const double longer = std::min(report_.plain.epochs, epochs / kShorter);
      if (epochs >= report_.plain.epochs ||
          static_cast<double>(seeds) * seconds_of_training(longer) > left()) {
        return false;
      }
      epochs = longer;
    }
  }

  Change shortened(double epochs) const {
    Change change = length_change(report_.plain, epochs);
    change.predicted = length_prediction(change, epochs_to_target(unshortened_) / epochs,
                                         unshortened_.epochs / epochs);
    return change;
  }

  void set_length(double epochs) {
    for (Kept& one : kept_) {
      if (one.change.subject != "length") continue;
      one.change = shortened(epochs);
      report_.trials[one.trial].change = one.change;
    }
  }

  void compare_at_equal_length(int64_t seeds) {
    const double epochs = report_.plain.epochs;
    if (report_.best_runs->epochs == epochs) {
      report_.equal_runs = report_.best_runs;
      return;
    }
    if (static_cast<double>(seeds) * seconds_of_training(epochs) > left()) return;
    const std::vector<TrainedRun> runs = train_all(epochs, seeds);
    if (!runs.back().failure.empty()) return;
    report_.equal_runs = summarize(runs, epochs);
  }

  void ablate() {
    for (size_t i = 0; i < kept_.size();) {
      const Change change = kept_[i].change;
      const bool is_execution = change.effect != Effect::kTraining;
      const bool fits = is_execution ? !is_over(1) : report_.best_runs && training_fits();
      if (!fits || change.subject == "length") {
        ++i;
        continue;
      }
      const bool is_useless = is_execution ? ablate_execution(i) : ablate_training(i);
      if (!is_useless) {
        ++i;
        continue;
      }
      Trial& trial = report_.trials[kept_[i].trial];
      trial.verdict = Verdict::kReverted;
      trial.reason = "the best recipe is as good without it";
      kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  bool training_fits() const { return seconds_of_training(report_.best_runs->epochs) < left(); }

  // Whether the best recipe is as good without this change.
  bool ablate_execution(size_t index) {
    const Comparison found = compare(options(index), options());
    if (!found.failure.empty()) return false;
    const Estimate worth = gain_of(found, config_.goal);
    if (worth.high < config_.worthwhile) return true;
    report_.ablations.push_back(
        {.change = kept_[index].change.name, .worth = worth, .energy = energy_gain(found)});
    return false;
  }

  static double energy_gain(const Comparison& found) {
    return found.energy_gain ? found.energy_gain->value : found.speedup.value;
  }

  // The recipe without the change may need a longer training to reach the target.
  bool ablate_training(size_t index) {
    const Trainings& best = *report_.best_runs;
    Ablation ablation{.change = kept_[index].change.name, .is_least = true};
    double speedup = 1, energy = 1;
    // Its speed was another one.
    if (report_.trials[kept_[index].trial].comparison) {
      const Comparison found = compare(options(index), options());
      if (!found.failure.empty()) return false;
      speedup = found.speedup.value;
      energy = energy_gain(found);
    }
    for (double epochs = best.epochs; ablation.is_least;
         epochs = std::min(report_.plain.epochs, epochs / kShorter)) {
      const TrainedRun run = experiments_.train(with_length(options(index), epochs), 1);
      if (!run.failure.empty()) return false;
      const auto reached = run.epochs_to(*report_.target, settings_.higher_is_better);
      const double longer = reached.value_or(epochs) / best.epochs_to_target;
      const double worth = speedup * longer;
      ablation.worth = {.value = worth, .low = worth, .high = worth, .rounds = 1};
      ablation.energy = energy * longer;
      if (!ablation.metric) ablation.metric = run.metric();
      ablation.is_least = !reached;
      if (epochs >= report_.plain.epochs || seconds_of_training(epochs / kShorter) > left()) break;
    }
    report_.ablations.push_back(std::move(ablation));
    return false;
  }

  Experiments& experiments_;
  const SearchConfig& config_;
  const Progress& progress_;
  Report report_;
  Settings settings_;  // Of options().
  std::vector<Kept> kept_;
  double samples_per_second_ = 0;
  Incumbent unshortened_;        // The best recipe before its length was changed.
  double noise_ = 0;             // Standard error of the target.
  double training_speedup_ = 1;  // Of kept changes of the training, such as larger batches.
  double resizing_speedup_ = 1;  // Of the whole training by progressive resizing.
};

}  // namespace

Report search(Experiments& experiments, const SearchConfig& config, const Progress& progress) {
  return Search(experiments, config, progress).run();
}

}  // namespace gallop::optimize
