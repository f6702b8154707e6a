#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gallop/optimize/changes.h"
#include "gallop/optimize/experiments.h"
#include "gallop/optimize/report.h"
#include "gallop/optimize/search.h"

namespace gallop::optimize {

/// Shares of the budget after which no further experiment of a stage begins.
constexpr double kExecutionShare = 0.4;
constexpr double kLastShare = 0.85;
/// A shorter training has this many of the epochs of the one before.
constexpr double kShorter = 0.7;

/// What the stages of a search share: the recipe so far, and the report.
struct SearchState {
  /// A change that is in the recipe, and the index of its trial in the report.
  struct Kept {
    Change change;
    size_t trial = 0;
  };

  Experiments& experiments;
  const SearchConfig& config;
  const Progress& progress;
  Report report{};
  Settings settings{};  ///< Of options().
  std::vector<Kept> kept{};
  double samples_per_second = 0;  ///< Of trainings with the recipe so far; 0: unknown.
  double resizing_speedup = 1;    ///< Of a whole training by progressive resizing.

  /// All options of the recipe so far, or those without one of the changes that were kept.
  std::vector<std::string> options(std::optional<size_t> without = std::nullopt) const;
  /// `all` with the length of a training of so many epochs.
  std::vector<std::string> with_length(std::vector<std::string> all, double epochs) const;

  /// Seconds of the budget that are left.
  double left() const { return config.budget_seconds - experiments.seconds(); }
  bool is_over(double share) const { return experiments.seconds() > share * config.budget_seconds; }
  /// An estimate, with start-up and evaluations.
  double seconds_of_training(double epochs) const;

  /// Appends a trial to the report.
  void add(Trial trial);
  /// Puts a change into the recipe, in place of an earlier one of the same subject. Precedes add()
  /// of its trial.
  void keep(const Change& change);

  /// Compares the speeds of whole trainings: in the part that is measured, images would have their
  /// initial size.
  Comparison compare(const std::vector<std::string>& base, const std::vector<std::string>& changed);
};

/// Multiplies a speed or an estimate.
void scale(Speed& speed, double factor);
void scale(Estimate& estimate, double factor);

}  // namespace gallop::optimize
