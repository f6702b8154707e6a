#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gallop/optimize/report.h"

namespace gallop::optimize {

struct SearchConfig {
  Goal goal = Goal::kTimeToAccuracy;
  std::string recipe;
  std::vector<std::string> given;  ///< Options that the user gave with it.
  double budget_seconds = 0;
  int64_t seeds = 3;         ///< Maximum number of trainings to compare final metrics.
  double worthwhile = 1.02;  ///< The factor by which a change must be better.
  /// The relative rise of the training loss over the same steps beyond which a change of execution
  /// is rejected.
  double tolerated_loss = 0.01;
  bool ablate = true;
  double price_per_hour = 0;
};

/// Called after each trial with the report so far, of which it is the last one.
using Progress = std::function<void(const Report& report)>;

/// Tries one change of a recipe at a time, and keeps it if it is better beyond doubt and no worse
/// in quality:
///
/// 1. Changes of execution, by comparing speeds and training losses.
/// 2. For time-to-accuracy, changes of the training, by final metrics: the metric of the recipe as
///    it is, in mean over seeds, is the target that a shorter training must reach.
/// 3. An ablation leaves out one change at a time; what turns out to be useless is reverted.
///
/// Ends when nothing is left to try, or the budget would be exceeded. Does what it does by the
/// results of `experiments` alone, so that a search that is interrupted can be repeated from
/// results that were kept. Throws what they throw.
Report search(Experiments& experiments, const SearchConfig& config, const Progress& progress);

}  // namespace gallop::optimize
