#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gallop/app/recipe.h"
#include "gallop/tune/sweep.h"

namespace gallop::app {

/// Resolves the recipe of a study with the options of a point, without deprecation warnings. Throws
/// UsageError.
ResolvedRecipe recipe_of_study(const Registries& registries, const tune::StudySettings& settings,
                               const tune::RunSpec& spec);

/// The metrics that evaluations of a study's recipe report, including those of its task. Opens the
/// data if the settings have a task-dependent metric, or none at all, unless `data.task` specifies
/// the task.
class RecipeMetrics {
 public:
  /// Resolves the recipe like recipe_of_study(); for a command, the metrics of any evaluation.
  /// Throws UsageError if a metric of the recipe is undefined for its task.
  RecipeMetrics(const Registries& registries, const tune::StudySettings& settings,
                const tune::RunSpec& spec);

  /// Throws UsageError if an objective or a limit of a recipe's study is neither a metric of its
  /// evaluations nor a time, memory or energy metric that every trial has.
  void check(const tune::StudySettings& settings) const;
  /// The metric by which the task compares evaluations. Throws UsageError if the data that
  /// determine the task cannot be opened.
  const std::string& deciding() const;
  /// False for unknown metrics.
  bool is_higher_better(std::string_view name) const;

 private:
  const train::ReportedMetric* find(std::string_view name) const;
  bool depends_on_task(const tune::StudySettings& settings) const;
  void add_task(const Recipe& recipe);
  [[noreturn]] void refuse(const std::string& metric, std::string_view plain) const;

  bool is_recipe_;
  std::vector<train::ReportedMetric> metrics_;
  std::string deciding_;     ///< Empty if the task is unknown.
  std::string why_no_task_;  ///< If the data cannot be opened.
};

}  // namespace gallop::app
