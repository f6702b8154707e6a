#include "gallop/app/slurm_launch.h"

#include <algorithm>
#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/launched_training.h"
#include "gallop/app/plugins.h"
#include "gallop/app/programs.h"
#include "gallop/app/recipe.h"
#include "gallop/app/slurm_job.h"
#include "gallop/app/train_arguments.h"
#include "gallop/app/trained_model.h"
#include "gallop/launch/slurm_script.h"
#include "gallop/track/run_folder.h"

namespace gallop::app {

namespace {

struct Arguments {
  SlurmArguments slurm;
  std::vector<std::string> train;  ///< The arguments after it.
};

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Train as a Slurm batch job, which saves before its time limit, requeues itself and "
      "resumes.\n"
      "Options that are not given are left to the cluster's defaults.\n\n"
      "Example: gallop launch --slurm --nodes 2 -n 4 --gpus-per-node 4 --time 04:00:00 train "
      "my.yaml\n",
      "gallop launch --slurm");
  arguments.slurm.add_to(parser);
  const auto command = parse_to_command(parser, args, {"train"}, /*takes_programs=*/false,
                                        "gallop launch --slurm --time 04:00:00 train my.yaml");
  if (command.empty()) return false;
  arguments.train.assign(command.begin() + 1, command.end());
  arguments.slurm.finish();
  return true;
}

// The training command of the job, which resumes the run by name after a restart. Errors that the
// job would have later are reported now.
void take_training(const Registries& registries, const TrainArguments& train,
                   Arguments& arguments) {
  launch::SlurmJob& job = arguments.slurm.job;
  if (train.show_config) throw UsageError("--show-config trains nothing; omit launch --slurm");
  std::string name = train.options.name;
  job.program = program_path().string();
  job.arguments = plugin_args(registries);
  job.arguments.emplace_back("train");
  if (train.recipe.empty()) {
    name = track::RunFolder::find(train.options.runs, train.resume).filename().string();
  } else {
    const ResolvedRecipe resolved = load_recipe(registries, train.recipe, train.overrides);
    if (name.empty()) name = job.run_stem = resolved.name;
    track::RunFolder::check_name(name);
    if (!train.options.resume_if_there) {
      if (job.run_stem.empty()) refuse_existing_run(fs::path(train.options.runs) / name);
      job.arguments.emplace_back("--continue");
    }
  }
  job.arguments.insert(job.arguments.end(), arguments.train.begin(), arguments.train.end());
  if (job.name.empty()) job.name = job_name(name);
}

}  // namespace

bool asks_for_slurm(const std::vector<std::string>& args) {
  const auto command = find_command(args, {"train"}, /*takes_programs=*/true);
  return std::find(args.begin(), command, "--slurm") != command;
}

ExitCode run_slurm_launch(const Registries& registries, const std::vector<std::string>& args) {
  Arguments arguments;
  TrainArguments train;
  if (!parse(args, arguments) || !parse_train(arguments.train, train)) return ExitCode::kDone;
  take_training(registries, train, arguments);
  const launch::SlurmJob& job = arguments.slurm.job;
  const std::string script = launch::slurm_script(job);
  if (arguments.slurm.dry_run) {
    std::fputs(script.c_str(), stdout);
    return ExitCode::kDone;
  }
  const std::string number = submit_job(script);
  const std::string name =
      job.run_stem.empty() ? train.options.name : fmt::format("{}-job{}", job.run_stem, number);
  fmt::print("run        {}\n",
             (train.recipe.empty() ? track::RunFolder::find(train.options.runs, train.resume)
                                   : fs::path(train.options.runs) / name)
                 .string());
  const std::string output = output_of_job(number);
  if (!output.empty()) fmt::print("output     {}\n", output);
  return ExitCode::kDone;
}

}  // namespace gallop::app
