#pragma once

#include <string>
#include <vector>

#include "gallop/app/recipe.h"

namespace gallop::app {

/// Which options of a recipe may change on resume. All others determine the meaning of weights,
/// outputs and recorded metrics, and must stay the same.
struct ResumeRule {
  const char* path;  ///< An option, "data.batch_size", or all of a section, "schedule.*".
  bool may_change;
  const char* help;  ///< Empty if there is nothing to add.
};
/// The first matching rule of an option applies.
const std::vector<ResumeRule>& resume_rules();

/// Whether an option, "optimizer.lr", may change.
bool may_change_on_resume(const std::string& option);

/// The rules for --help.
std::string describe_resume_rules();

/// An option whose value differs from the run's, with values in recipe notation.
struct OptionChange {
  std::string option;
  std::string in_run;
  std::string wanted;
  std::string section{};  ///< The whole section, if it names a member of a family.
};

/// The changes of `wanted` relative to a run's recipe. `is_continued`: `wanted` is a complete
/// recipe, in which "auto" stands for the value that the run has measured.
std::vector<OptionChange> changed_options(ResolvedRecipe& run, ResolvedRecipe& wanted,
                                          bool is_continued);

/// "train.epochs 4 -> 8, optimizer.lr 0.05 -> 0.001"
std::string describe(const std::vector<OptionChange>& changes);

/// Throws UsageError that names each forbidden change, with both values and the remedy. `asked_by`:
/// "the command line", or the recipe's file.
void check_changes(const std::vector<OptionChange>& changes, const std::string& run,
                   const std::string& asked_by);

/// The changes as overrides of the run's recipe.
std::vector<Override> overrides_of(const std::vector<OptionChange>& changes);

/// Throws as check_changes() if overrides name another model, optimizer or data set, which does not
/// have the run's other options.
void check_names(ResolvedRecipe& run, const std::string& run_name,
                 const std::vector<Override>& overrides);

/// The text of a run's recipe without the options of a member of a family (a schedule) that the
/// overrides replace by another one.
std::string without_replaced(ResolvedRecipe& run, const std::string& recipe_yaml,
                             const std::string& file_name, const std::vector<Override>& overrides);

}  // namespace gallop::app
