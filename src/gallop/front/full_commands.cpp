// Commands that are missing in the front program: they exec the full program, which links the real
// implementations of these functions. A command with neither an entry here nor a light source in
// app/ (src/gallop/CMakeLists.txt) is a linker error.
#include "gallop/app/command.h"
#include "gallop/app/programs.h"
#include "gallop/app/recipe_actions.h"
#include "gallop/app/recipe_options.h"
#include "gallop/app/runs/subcommands.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/app/tune/trial_recipe.h"

namespace gallop::app {

using Args = std::vector<std::string>;

ExitCode run_train(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program(StopSignals::kHeld);
}
ExitCode run_evaluate(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}
ExitCode run_predict(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}
ExitCode run_find_lr(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program(StopSignals::kHeld);
}
ExitCode run_find_batch(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program(StopSignals::kHeld);
}
ExitCode run_graph(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}
ExitCode run_pipeline(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}
ExitCode run_profile(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program(StopSignals::kHeld);
}
ExitCode run_optimize(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program(StopSignals::kHeld);
}
ExitCode run_prove(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program(StopSignals::kHeld);
}
ExitCode run_model(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}
ExitCode run_launch(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program(StopSignals::kHeld);
}
ExitCode run_convert(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}
ExitCode run_env(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}

ExitCode runs_verify(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}
ExitCode runs_clean(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}
ExitCode runs_reproduce(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}

void print_recipe_options(const CommandContext& /*command*/, const std::string& /*key*/) {
  exec_full_program();
}
void draw_schedule(const CommandContext& /*command*/, const std::string& /*recipe*/,
                   const std::vector<Override>& /*overrides*/, const std::string& /*svg*/) {
  exec_full_program();
}
void list_schedules(const CommandContext& /*command*/, const std::string& /*svg*/) {
  exec_full_program();
}

ExitCode tune_sweep(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}
ExitCode tune_create(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}
ExitCode tune_lineage(const CommandContext& /*command*/, const Args& /*arguments*/) {
  exec_full_program();
}

void write_trial_recipe(const CommandContext& /*command*/, const std::string& /*file*/,
                        const tune::Study& /*study*/, const tune::Trial& /*trial*/) {
  exec_full_program();
}

}  // namespace gallop::app
