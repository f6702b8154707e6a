#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/optimize/experiments.h"

namespace gallop::optimize {

/// What a search minimizes.
enum class Goal {
  kTimeToAccuracy,  ///< Seconds of training until the metric that the recipe reaches as it is.
  kThroughput,      ///< Seconds per sample, with the same mathematics.
  kMemory,          ///< Peak memory of the process.
  kEnergy,          ///< Joules per sample, with the same mathematics.
};

/// "time-to-accuracy", "throughput", "memory", "energy".
const char* name_of(Goal goal);
std::optional<Goal> goal_of(const std::string& name);

/// What a change affects besides speed.
enum class Effect {
  kNone,      ///< The same operations.
  kRounding,  ///< The same mathematics in other formats or another order.
  kTraining,  ///< Another training: other updates, and other final weights.
};

/// One change of a recipe.
struct Change {
  std::string name;  ///< "precision bf16"
  std::string
      subject;  ///< "precision": a later change of the same subject replaces an earlier one.
  std::vector<std::string> options;
  Effect effect = Effect::kNone;
  std::optional<Prediction> predicted{};
};

/// Changes of how a recipe is executed, but not of what it computes: those with the highest
/// predicted speed-up first, then those without a prediction.
std::vector<Change> execution_changes(const Settings& settings,
                                      const std::vector<Prediction>& predictions, Goal goal);

/// Learning rate schedules: one-cycle with the recipe's rate, and with `found_lr`. Predictions are
/// from publications.
std::vector<Change> schedule_changes(const Settings& settings, std::optional<double> found_lr);

/// Larger batches, each with its learning rate: linearly scaled for SGD (Goyal et al., 2017), by
/// the square root for adaptive optimizers (Malladi et al., 2022).
std::vector<Change> batch_changes(const Settings& settings);

/// What another batch of a change of batch_changes() is predicted to gain if it is so much faster:
/// a batch of k times the size needs between as many and k times as many epochs (McCandlish et al.,
/// "An empirical model of large-batch training", 2018).
Prediction batch_prediction(const Settings& settings, const Change& change,
                            const Estimate& speedup);

/// AdamW with this learning rate, as an option.
std::string adamw_option(double lr);
/// Its usual learning rate.
inline constexpr double kAdamwLr = 1e-3;
/// Whether AdamW is among optimizer_changes().
bool tries_adamw(const Settings& settings);

/// Other optimizers: Nesterov momentum for SGD without any, AdamW for SGD, with `adamw_lr`, and
/// Muon with its usual rates. None if the recipe has parameter groups or wrappers, or scales the
/// learning rate, as these belong to its optimizer.
std::vector<Change> optimizer_changes(const Settings& settings, double adamw_lr);

/// Label smoothing, weight decay if the recipe has none, and an exponential moving average of the
/// weights.
std::vector<Change> regularization_changes(const Settings& settings);

/// Progressive resizing: images of half the size for the first half of the training, which then
/// grow, and have their full size for the last fifth.
struct ProgressiveResizing {
  /// The whole training with it.
  static Change change();
  /// Without its growth, to measure the speed at half the size.
  static std::vector<std::string> at_half_size();
  /// `options` without it.
  static std::vector<std::string> without(std::vector<std::string> options);
  static bool is_in(const std::vector<std::string>& options);
  /// The speed-up of the whole training, if it is `at_half_size` there and the time of a step
  /// changes linearly as images grow.
  static Estimate speedup(const Estimate& at_half_size);
  static Prediction prediction(const Estimate& at_half_size);
};

/// Another length of the training.
Change length_change(const Settings& settings, double epochs);
/// Its prediction if it is `whole` times shorter than the training before, and `reached` times
/// shorter than that was when it reached the target.
Prediction length_prediction(const Change& change, double reached, double whole);

}  // namespace gallop::optimize
