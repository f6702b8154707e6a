#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/plugins.h"
#include "gallop/app/print.h"
#include "gallop/app/registries.h"
#include "gallop/app/signals.h"
#include "gallop/app/slurm_job.h"
#include "gallop/app/tune/new_study.h"
#include "gallop/app/tune/slurm_study.h"
#include "gallop/app/tune/study_run.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/base/affinity.h"
#include "gallop/base/file.h"
#include "gallop/base/hardware.h"
#include "gallop/base/secret.h"
#include "gallop/base/shell.h"
#include "gallop/base/socket.h"
#include "gallop/base/text.h"
#include "gallop/launch/world.h"
#include "gallop/tune/fold_text.h"
#include "gallop/tune/study_text.h"

namespace gallop::app {

namespace {

// Delay before a process other than the first one tries to lead.
constexpr double kWaitForFirstSeconds = 10;
constexpr size_t kNameDigits = 8;

struct Arguments {
  NewStudy study;
  std::string studies = "studies";
  StudyRunConfig run;
  std::optional<int> workers, cores;
  std::string listen;
  std::string helped;  // The study of --worker.
  bool joins = false;
  bool keeps_variables = false;
  bool quiet = false, json = false;
  SlurmArguments slurm;
};

std::string list_of_actions() {
  std::string text;
  for (const Command& action : tune_actions()) {
    text += fmt::format("  {:<12}{}\n", action.name, action.summary);
  }
  return text;
}

// A first argument that does not look like a file may be a misspelled action.
void check_action(const std::vector<std::string>& args) {
  const std::string word = args.empty() ? "-" : args.front();
  std::error_code error;
  if (word.starts_with('-') || fs::path(word).has_extension() || fs::exists(word, error)) return;
  std::vector<std::string> names;
  for (const Command& action : tune_actions()) names.emplace_back(action.name);
  const std::string nearest = nearest_name(word, names);
  throw UsageError(
      fmt::format("'{}' is neither a sweep nor an action{}; 'gallop tune --help' "
                  "lists the actions",
                  printable(word), nearest.empty() ? "" : ", did you mean '" + nearest + "'?"));
}

// GPU indices as in CUDA_VISIBLE_DEVICES.
std::string wrong_gpu(const std::string& text) {
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (is_number || text.starts_with("GPU-") || text.starts_with("MIG-")) return {};
  return fmt::format("'{}' is not a list of GPU indices such as 0,1", printable(text));
}

void add_options(CLI::App& parser, Arguments& arguments) {
  StudyRunConfig& run = arguments.run;
  parser.add_option("SWEEP", arguments.study.sweep_file, "sweep file");
  parser.add_option("--name", arguments.study.name, "study name; by default that of the file");
  parser.add_option("--studies", arguments.studies, "folder of the studies");
  parser.add_option("--store", arguments.study.store,
                    "postgresql://...: database that stores the study, for workers on many hosts");
  parser.add_option("--warm-start", arguments.study.earlier,
                    "STUDY: warm-start a new study with the trials of this one");
  parser.add_option("--worker", arguments.helped,
                    "STUDY: join a study that another process coordinates, on this or another "
                    "host, by its folder");
  parser.add_flag("--join", arguments.joins,
                  "join the study of this sweep, and coordinate it if no process does");
  parser.add_option("--listen", arguments.listen,
                    "address to listen on for workers on other hosts; 127.0.0.1 by default");
  parser
      .add_option("--workers", arguments.workers,
                  "parallel trials on this machine, which share its cores; per process if a "
                  "launcher started several")
      ->check(CLI::Range(1, 1024));
  parser
      .add_option("--cores", arguments.cores,
                  "cores per trial; without --workers as many workers as fit")
      ->check(CLI::Range(1, 65536));
  parser
      .add_option("--gpus", run.gpus,
                  "GPU indices, assigned to workers in turn; further workers share them")
      ->delimiter(',')
      ->check(CLI::Validator(wrong_gpu, "", "GPU"));
  parser.add_flag("--keep-variables", arguments.keeps_variables,
                  "pass the environment variables of torchrun, MPI and Slurm on to trials, which "
                  "then join that process group");
  auto* quiet = parser.add_flag("--quiet", arguments.quiet, "print the final result only");
  parser.add_flag("--json", arguments.json, "print one JSON object per line")->excludes(quiet);
}

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Tune the hyperparameters of a recipe or of any command to optimize a metric.\n\n"
      "Example: gallop tune sweep.yaml --workers 2\n"
      "         srun -n 8 gallop tune sweep.yaml        also with mpirun or torchrun --no-python\n"
      "         gallop tune --slurm --help              as a Slurm job or job array\n\n"
      "The sweep is a YAML file. The same command again resumes the study. There is also\n"
      "'gallop tune ACTION':\n" +
          list_of_actions(),
      "gallop tune");
  add_options(parser, arguments);
  if (std::find(args.begin(), args.end(), "--slurm") != args.end()) {
    arguments.slurm.add_to(parser);
    parser
        .add_option("--array", arguments.slurm.job.array,
                    "submit a job array with this many elements instead of one job; each starts "
                    "when there is room")
        ->check(CLI::Range(1, 100000));
  }
  check_action(args);
  if (!parse_arguments(parser, args)) return false;
  if (arguments.study.sweep_file.empty() == arguments.helped.empty()) {
    throw UsageError(
        "specify either a sweep or --worker STUDY; for example: gallop tune sweep.yaml");
  }
  if (!arguments.helped.empty() && (arguments.joins || arguments.slurm.is_wanted)) {
    throw UsageError("--worker joins an existing study; --join and --slurm require a sweep");
  }
  arguments.study.studies = arguments.studies;
  arguments.slurm.finish();
  arguments.run.style = arguments.json    ? StudyView::Style::kJson
                        : arguments.quiet ? StudyView::Style::kQuiet
                                          : StudyView::Style::kText;
  return true;
}

ExitCode submit(const Registries& registries, Arguments& arguments) {
  SlurmStudy study;
  study.slurm = arguments.slurm;
  study.study = arguments.study;
  study.workers = arguments.workers.value_or(1);
  study.listen = arguments.listen;
  if (arguments.cores) study.more_args = {"--cores", std::to_string(*arguments.cores)};
  for (const std::string& gpu : arguments.run.gpus) {
    study.more_args.insert(study.more_args.end(), {"--gpus", gpu});
  }
  for (const auto& [is_given, option] : {std::pair{arguments.keeps_variables, "--keep-variables"},
                                         {arguments.quiet, "--quiet"},
                                         {arguments.json, "--json"}}) {
    if (is_given) study.more_args.emplace_back(option);
  }
  return submit_study(registries, std::move(study));
}

// With several launched processes, the default is one worker each.
void choose_workers(Arguments& arguments, const launch::World& world, const tune::Sweep& sweep) {
  StudyRunConfig& run = arguments.run;
  const auto given = static_cast<int>(cores_given().size());
  run.cores = arguments.cores.value_or(static_cast<int>(sweep.cores));
  const int room = run.cores > 0 ? std::max(1, given / run.cores) : 1;
  const int usual = world.size == 1 && sweep.workers > 0 ? static_cast<int>(sweep.workers) : room;
  run.workers = arguments.workers.value_or(usual);
  if (int64_t{run.workers} * run.cores <= given) return;
  throw UsageError(fmt::format("{} worker{} with {} core{} each: this process has only {}",
                               run.workers, run.workers == 1 ? "" : "s", run.cores,
                               run.cores == 1 ? "" : "s", given));
}

void finish_config(Arguments& arguments, const launch::World& world, const tune::Sweep& sweep) {
  StudyRunConfig& run = arguments.run;
  choose_workers(arguments, world, sweep);
  run.first_worker = world.local_rank * run.workers;
  if (!arguments.listen.empty()) {
    run.listen = arguments.listen;
  } else if (world.local_size < world.size) {
    run.listen = "0.0.0.0";
  }
  // With these, a trial would wait for processes that are not part of it.
  if (!world.starter.empty() && !arguments.keeps_variables) {
    run.without = launch::starter_variables();
  }
}

// If several processes on this host have this folder (possible with a database), the first gets
// a stable name that survives a restart, the others get none. Other folders may have the same
// study.
std::optional<FileLock> take_name(const fs::path& folder, std::string& name) {
  const std::string prefix = host_name() + ":";
  const fs::path file = folder / ("worker." + host_name() + ".lock");
  std::string known = FileLock::owner_of(file);
  if (!known.starts_with(prefix)) known = prefix + new_secret().substr(0, kNameDigits);
  auto lock = FileLock::try_lock(file, known);
  if (lock) name = known;
  return lock;
}

StudyEnd take_part(const Registries& registries, Arguments& arguments, const launch::World& world,
                   const tune::StudyPlace& place, const tune::Sweep& sweep,
                   const StopRequest& stop) {
  const bool is_first = world.rank == 0;
  const bool is_alone = world.size == 1 && !arguments.joins;
  // A stable name, so that after a restart each worker resumes the trial that it had.
  std::optional<FileLock> name;
  if (is_alone && place.is_in_database()) {
    name = take_name(place.folder, arguments.run.name);
  } else if (is_alone) {
    arguments.run.name = host_name();
  }
  if (is_alone || (place.is_in_database() && is_first)) {
    return run_study(registries, place, arguments.run, !arguments.joins, stop);
  }
  if (place.is_in_database()) return help_study(registries, place, arguments.run, stop);
  return join_study(registries, place, arguments.run,
                    {.wait_seconds = is_first ? 0 : kWaitForFirstSeconds,
                     .resumes = is_first && !arguments.joins,
                     .settings = sweep.settings},
                    stop);
}

void show_best(const tune::StudyPlace& place) {
  const tune::Study study = place.read();
  const std::string best = best_text(study);
  const std::string pruned = pruned_text(study);
  if (!pruned.empty()) {
    fmt::print("{}", pruned);
    return;
  }
  if (best.empty() && study.count(tune::TrialState::kComplete) > 0) {
    throw DataError(above_limits_text(study));
  }
  if (best.empty()) {
    throw DataError(fmt::format("no trial finished; their output is in {}",
                                (place.folder / "output").string()));
  }
  fmt::print("best       {}{}", best, shared_text(study, 0));
  const std::string folds = folds_text(study);
  if (!folds.empty()) fmt::print("mean and standard deviation:\n{}", folds);
  const char* const verb =
      study.settings().run.find("\"recipe\"") == std::string::npos ? "run" : "train";
  const bool has_several = study.objectives() > 1;
  fmt::print("to {} {} again: gallop tune best {}{}\n", verb, has_several ? "one" : "it",
             shell_word(place.folder.string()), has_several ? " --trial NUMBER" : "");
}

// The command that resumes the study; its folder identifies the store.
std::vector<std::string> args_to_resume(const Registries& registries, const Arguments& arguments) {
  std::vector<std::string> args = {"gallop", "tune", arguments.study.sweep_file};
  const auto add_if = [&](bool is_given, const char* option, const std::string& value) {
    if (is_given) args.insert(args.end(), {option, value});
  };
  add_if(!arguments.study.name.empty(), "--name", arguments.study.name);
  add_if(arguments.studies != Arguments().studies, "--studies", arguments.studies);
  add_if(arguments.workers.has_value(), "--workers", std::to_string(arguments.run.workers));
  add_if(arguments.cores.has_value(), "--cores", std::to_string(arguments.run.cores));
  add_if(!arguments.listen.empty(), "--listen", arguments.listen);
  for (const std::string& gpu : arguments.run.gpus) add_if(true, "--gpus", gpu);
  if (arguments.joins) args.emplace_back("--join");
  const auto plugins = plugin_args(registries);
  args.insert(args.end(), plugins.begin(), plugins.end());
  return args;
}

}  // namespace

ExitCode tune_sweep(const CommandContext& command, const std::vector<std::string>& args) {
  StopRequest stop;
  SignalGuard signals(stop);
  Arguments arguments;
  if (!parse(args, arguments)) return ExitCode::kDone;
  const Registries& registries = command.registries();
  if (arguments.slurm.is_wanted) return submit(registries, arguments);
  const launch::World world = launch::read_world(launch::process_environment());
  launch::pin_to_local_cores(world);
  if (!arguments.helped.empty()) {
    finish_config(arguments, world, {});
    const tune::StudyPlace place = tune::find_study(arguments.studies, arguments.helped);
    signals.started();
    return help_study(registries, place, arguments.run, stop).is_done ? ExitCode::kDone
                                                                      : ExitCode::kStopped;
  }
  if (!arguments.listen.empty()) resolve(arguments.listen, /*port=*/0);
  tune::Sweep sweep;
  arguments.study.may_be_led = arguments.joins || world.size > 1;
  const std::string text = read_sweep(registries, arguments.study, sweep);
  finish_config(arguments, world, sweep);
  const tune::StudyPlace place = make_study(registries.tune, arguments.study, sweep, text);
  arguments.run.seconds = sweep.seconds;
  signals.started();  // From here on, stop signals let trials save.
  const StudyEnd end = take_part(registries, arguments, world, place, sweep, stop);
  if (!end.is_done) {
    if (end.has_led) {
      print_error("gallop: stopped; to resume: {}\n",
                  shell_line(args_to_resume(registries, arguments)));
    }
    return ExitCode::kStopped;
  }
  if (end.has_led && !arguments.json) show_best(place);
  return ExitCode::kDone;
}

}  // namespace gallop::app
