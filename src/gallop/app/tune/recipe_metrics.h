#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gallop/app/recipe.h"
#include "gallop/tune/sweep.h"

namespace gallop::app {

/// The recipe of a study with the options of a point of the space, without warnings of deprecated
/// names. Throws UsageError.
ResolvedRecipe recipe_of_study(const Registries& registries, const tune::StudySettings& settings,
                               const tune::RunSpec& spec);

/// The metrics that the evaluations of a study's recipe report: its own, and those of the task of
/// its data. The data are opened where the settings have a metric that depends on the task, or none
/// at all, unless `data.task` names it.
class RecipeMetrics {
 public:
  /// Reads the recipe as recipe_of_study() does; of a command those of every evaluation. Throws
  /// UsageError where one of the recipe's metrics has no meaning for its task.
  RecipeMetrics(const Registries& registries, const tune::StudySettings& settings,
                const tune::RunSpec& spec);

  /// Throws UsageError where an objective or a limit of a recipe's study is a metric that its
  /// evaluations do not report, nor the seconds, bytes and joules that every trial has.
  void check(const tune::StudySettings& settings) const;
  /// The metric by which the task compares evaluations. Throws UsageError where the data that
  /// decide the task cannot be opened.
  const std::string& deciding() const;
  /// False for a metric that is not reported.
  bool is_higher_better(std::string_view name) const;

 private:
  const train::ReportedMetric* find(std::string_view name) const;
  bool depends_on_task(const tune::StudySettings& settings) const;
  void add_task(const Recipe& recipe);
  [[noreturn]] void refuse(const std::string& metric, std::string_view plain) const;

  bool is_recipe_;
  std::vector<train::ReportedMetric> metrics_;
  std::string deciding_;     ///< Empty where the task is not known.
  std::string why_no_task_;  ///< Where the data cannot be opened.
};

}  // namespace gallop::app
