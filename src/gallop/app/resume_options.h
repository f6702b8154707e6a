#pragma once

#include <string>
#include <vector>

#include "gallop/app/recipe.h"

namespace gallop::app {

/// Which options of a recipe may change where a run continues. All that is not listed is what its
/// weights, its outputs and its recorded metrics mean, and stays as it was.
struct ResumeRule {
  const char* path;  ///< An option, "data.batch_size", or all of a section, "schedule.*".
  bool may_change;
  const char* help;  ///< Empty where it says nothing more.
};
/// The first that matches an option decides.
const std::vector<ResumeRule>& resume_rules();

/// Whether an option, "optimizer.lr", may change.
bool may_change_on_resume(const std::string& option);

/// A few lines for --help: all that may change.
std::string describe_resume_rules();

/// An option that has another value than in the run, with values as a recipe has them.
struct OptionChange {
  std::string option;
  std::string in_run;
  std::string wanted;
  std::string section{};  ///< All of its section, where it is the name of a member of a family.
};

/// What `wanted` changes of a run's recipe. `is_continued`: it is a recipe of its own, in which
/// "auto" means what the run has found.
std::vector<OptionChange> changed_options(ResolvedRecipe& run, ResolvedRecipe& wanted,
                                          bool is_continued);

/// "train.epochs 4 -> 8, optimizer.lr 0.05 -> 0.001"
std::string describe(const std::vector<OptionChange>& changes);

/// Throws UsageError that names each change that a resume does not allow, with both values and what
/// to do. `asked_by`: "the command line", or the recipe's file.
void check_changes(const std::vector<OptionChange>& changes, const std::string& run,
                   const std::string& asked_by);

/// The same changes as overrides of the run's recipe.
std::vector<Override> overrides_of(const std::vector<OptionChange>& changes);

/// Throws as check_changes() does where overrides name another model, optimizer or data set, to
/// which the run's other options would be unknown.
void check_names(ResolvedRecipe& run, const std::string& run_name,
                 const std::vector<Override>& overrides);

/// The text of a run's recipe without the options of a member of a family (a schedule) that the
/// overrides replace by another one, which has options of its own.
std::string without_replaced(ResolvedRecipe& run, const std::string& recipe_yaml,
                             const std::string& file_name, const std::vector<Override>& overrides);

}  // namespace gallop::app
