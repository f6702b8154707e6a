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

/// The metrics that the evaluations of a study's recipe report.
class RecipeMetrics {
 public:
  /// Reads the recipe as recipe_of_study() does; of a command those of every evaluation.
  RecipeMetrics(const Registries& registries, const tune::StudySettings& settings,
                const tune::RunSpec& spec);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// False of one that is not there.
  bool is_higher_better(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  const train::ReportedMetric* find(std::string_view name) const;
  std::vector<train::ReportedMetric> metrics_;
};

}  // namespace gallop::app
