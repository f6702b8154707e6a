// What the front has not: it goes on as the full program, which links the functions of these names
// that do the work. A command whose function is neither here nor among the light sources of app/
// (src/gallop/CMakeLists.txt) is missed by the linker.
#include "gallop/app/command.h"
#include "gallop/app/programs.h"
#include "gallop/app/recipe_actions.h"
#include "gallop/app/recipe_options.h"
#include "gallop/app/runs/subcommands.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/app/tune/trial_recipe.h"

namespace gallop::app {

using Args = std::vector<std::string>;

ExitCode run_train(const Args& /*arguments*/) { exec_full_program(); }
ExitCode run_evaluate(const Args& /*arguments*/) { exec_full_program(); }
ExitCode run_predict(const Args& /*arguments*/) { exec_full_program(); }
ExitCode run_find_lr(const Args& /*arguments*/) { exec_full_program(); }
ExitCode run_find_batch(const Args& /*arguments*/) { exec_full_program(); }
ExitCode run_graph(const Args& /*arguments*/) { exec_full_program(); }
ExitCode run_launch(const Args& /*arguments*/) { exec_full_program(); }
ExitCode run_convert(const Args& /*arguments*/) { exec_full_program(); }
ExitCode run_env(const Args& /*arguments*/) { exec_full_program(); }

ExitCode runs_verify(const Args& /*arguments*/) { exec_full_program(); }
ExitCode runs_reproduce(const Args& /*arguments*/) { exec_full_program(); }

void print_recipe_options(const std::string& /*key*/) { exec_full_program(); }
void draw_schedule(const std::string& /*recipe*/, const std::vector<Override>& /*overrides*/,
                   const std::string& /*svg*/) {
  exec_full_program();
}
void list_schedules(const std::string& /*svg*/) { exec_full_program(); }

ExitCode tune_sweep(const Args& /*arguments*/) { exec_full_program(); }
ExitCode tune_create(const Args& /*arguments*/) { exec_full_program(); }
ExitCode tune_lineage(const Args& /*arguments*/) { exec_full_program(); }

void write_trial_recipe(const std::string& /*file*/, const tune::Study& /*study*/,
                        const tune::Trial& /*trial*/) {
  exec_full_program();
}

}  // namespace gallop::app
