#include "gallop/app/slurm_launch.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <optional>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/launched_training.h"
#include "gallop/app/recipe.h"
#include "gallop/app/train_arguments.h"
#include "gallop/app/trained_run.h"
#include "gallop/base/child_process.h"
#include "gallop/base/text.h"
#include "gallop/launch/slurm_script.h"
#include "gallop/track/run_folder.h"

namespace gallop::app {

namespace {

constexpr int kMost = 100000;

struct Arguments {
  launch::SlurmJob job;
  std::optional<int> processes;
  bool slurm = false, dry_run = false;
  std::vector<std::string> train;  ///< What stands behind it.
};

void add_options(CLI::App& parser, Arguments& arguments) {
  launch::SlurmJob& job = arguments.job;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return parser.add_option(name, value, help);
  };
  const CLI::Range count(1, kMost);
  parser.add_flag("--slurm", arguments.slurm, "submit a batch job of Slurm");
  parser.add_flag("--dry-run", arguments.dry_run, "print the job script, and submit nothing");
  add("--nodes", job.nodes, "how many; 1 by default")->check(count);
  add("-n,--processes", arguments.processes,
      "on each node; by default one for each of its GPUs, or one")
      ->check(count);
  add("--time", job.time, "limit, as 04:00:00 or 1-12:00:00");
  add("--partition", job.partition, "of the cluster");
  add("--account", job.account, "to charge");
  add("--gpus-per-node", job.gpus_per_node, "how many")->check(count);
  add("--cpus-per-task", job.cpus_per_process, "cores of each process")->check(count);
  add("--mem", job.memory, "memory of each node, as 64G");
  add("--job-name", job.name, "the run's name by default");
  add("--signal-seconds", job.signal_seconds,
      "from the request to save to the time limit; 120 by default");
  add("--max-restarts", job.max_restarts,
      "how often to start again within a job where a process fails; 3 by default")
      ->check(CLI::Range(0, kMost));
  add("--sbatch", job.more_options, "one more option for sbatch; may be given more than once")
      ->expected(1)
      ->take_all();
}

bool parse(const std::vector<std::string>& words, Arguments& arguments) {
  CLI::App parser(
      "Train as a batch job of Slurm, which saves before its time limit, puts itself back into the "
      "queue\n"
      "and goes on from there. What the cluster is not told it decides itself.\n\n"
      "Example: gallop launch --slurm --nodes 2 -n 4 --gpus-per-node 4 --time 04:00:00 train "
      "my.yaml\n",
      "gallop launch --slurm");
  add_options(parser, arguments);
  const auto command = parse_to_command(parser, words, {"train"},
                                        "gallop launch --slurm --time 04:00:00 train my.yaml");
  if (command.empty()) return false;
  arguments.train.assign(command.begin() + 1, command.end());
  arguments.job.processes = arguments.processes.value_or(arguments.job.gpus_per_node.value_or(1));
  return true;
}

// In letters that mean nothing to sbatch.
std::string job_name(std::string run) {
  for (char& c : run) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x80 || (std::isalnum(code) == 0 && c != '.' && c != '-')) c = '_';
  }
  return run;
}

// The training as the job starts it, also again: it goes on with its run, which has a name. What
// the job would refuse in hours is refused now.
void take_training(const TrainArguments& train, Arguments& arguments) {
  launch::SlurmJob& job = arguments.job;
  if (train.show_config) throw UsageError("--show-config trains nothing: leave out launch --slurm");
  std::string name = train.place.name;
  job.program = fs::read_symlink("/proc/self/exe").string();
  job.arguments = arguments.train;
  if (train.recipe.empty()) {
    name = find_run(train.place.runs, train.resume).filename().string();
  } else {
    const Families families;
    const ResolvedRecipe resolved = load_recipe(families, train.recipe, train.overrides);
    if (name.empty()) name = job.run_stem = resolved.name;
    track::RunFolder::check_name(name);
    if (!train.place.resume_if_there) {
      if (job.run_stem.empty()) refuse_existing_run(fs::path(train.place.runs) / name);
      job.arguments.insert(job.arguments.begin(), "--continue");
    }
  }
  if (job.name.empty()) job.name = job_name(name);
}

std::string in_one_line(std::string text) {
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "; ");
  }
  return printable(text);
}

// The number of the job. What sbatch warns of stands before it.
std::string submit(const std::string& script) {
  ChildRun run;
  try {
    run = run_to_end({.program = "sbatch", .arguments = {"--parsable"}, .input = script});
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("{}; --dry-run prints the script", error.what()));
  }
  while (run.output.ends_with('\n')) run.output.pop_back();
  const std::string last = run.output.substr(run.output.rfind('\n') + 1);
  std::string number = last.substr(0, last.find(';'));
  const bool is_number =
      !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
  if (run.is_good() && is_number) return number;
  throw DeviceError(fmt::format("sbatch {}: {}", run.end.words(), in_one_line(run.output)));
}

// As Slurm says, whose own environment variables may have changed it; empty where it does not.
std::string output_of(const std::string& number) {
  const ChildRun run = run_to_end({.program = "scontrol", .arguments = {"show", "job", number}});
  const std::string mark = " StdOut=";
  const size_t at = run.output.find(mark);
  if (at == std::string::npos) return {};
  const size_t begin = at + mark.size();
  return run.output.substr(begin, run.output.find('\n', begin) - begin);
}

}  // namespace

bool asks_for_slurm(const std::vector<std::string>& words) {
  const auto train = std::find(words.begin(), words.end(), "train");
  return std::find(words.begin(), train, "--slurm") != train;
}

ExitCode run_slurm_launch(const std::vector<std::string>& words) {
  Arguments arguments;
  TrainArguments train;
  if (!parse(words, arguments) || !parse_train(arguments.train, train)) return ExitCode::kDone;
  take_training(train, arguments);
  const launch::SlurmJob& job = arguments.job;
  const std::string script = launch::slurm_script(job);
  if (arguments.dry_run) {
    std::fputs(script.c_str(), stdout);
    return ExitCode::kDone;
  }
  const std::string number = submit(script);
  fmt::print("job        {}\n", number);
  const std::string name =
      job.run_stem.empty() ? train.place.name : fmt::format("{}-job{}", job.run_stem, number);
  fmt::print("run        {}\n", (train.recipe.empty() ? find_run(train.place.runs, train.resume)
                                                      : fs::path(train.place.runs) / name)
                                    .string());
  const std::string output = output_of(number);
  if (!output.empty()) fmt::print("output     {}\n", output);
  return ExitCode::kDone;
}

}  // namespace gallop::app
