#include "gallop/app/tune/trial_recipe.h"

#include <fmt/format.h>

#include "gallop/app/output_file.h"
#include "gallop/app/recipe.h"
#include "gallop/base/error.h"
#include "gallop/tune/study_text.h"
#include "gallop/tune/sweep.h"
#include "gallop/tune/trial_args.h"

namespace gallop::app {

void write_trial_recipe(const CommandContext& command, const std::string& file,
                        const tune::Study& study, const tune::Trial& trial) {
  const tune::RunSpec spec = tune::parse_run_spec(study.settings().run);
  if (spec.recipe.empty()) throw UsageError("--recipe: the trials of this study run a command");
  std::vector<std::string> options = recipe_options(spec, study.space(), trial.point);
  ResolvedRecipe resolved = load_recipe(command.registries(), spec.recipe, take_overrides(options));
  write_output(
      file, fmt::format("# Trial {} of the study {}: {}\n{}", trial.number, study.settings().name,
                        values_text(study, trial), resolved.to_yaml(false)));
}

}  // namespace gallop::app
