#include "gallop/app/tune/slurm_study.h"

#include <cstdio>

#include <fmt/format.h>

#include "gallop/app/plugins.h"
#include "gallop/app/programs.h"
#include "gallop/launch/slurm_script.h"
#include "gallop/tune/tuner.h"

namespace gallop::app {

namespace {

std::vector<std::string> args_of(const Registries& registries, const SlurmStudy& wanted) {
  const NewStudy& study = wanted.study;
  std::vector<std::string> args = {"tune", study.sweep_file, "--join", "--workers",
                                   std::to_string(wanted.workers)};
  const auto add_if = [&](const char* option, const std::string& value) {
    if (!value.empty()) args.insert(args.end(), {option, value});
  };
  add_if("--name", study.name);
  if (study.studies != NewStudy().studies) add_if("--studies", study.studies.string());
  // The submitted job finds both in the study; a database address may contain a password.
  if (wanted.slurm.dry_run) {
    add_if("--store", study.store);
    add_if("--warm-start", study.earlier);
  }
  const bool has_hosts = wanted.slurm.job.nodes > 1 || wanted.slurm.job.array > 1;
  add_if("--listen", wanted.listen.empty() && has_hosts ? "0.0.0.0" : wanted.listen);
  args.insert(args.end(), wanted.more_args.begin(), wanted.more_args.end());
  const auto plugins = plugin_args(registries);
  args.insert(args.end(), plugins.begin(), plugins.end());
  return args;
}

// As 'gallop tune SWEEP' does for an existing study.
void go_on(const tune::TuneRegistries& registries, const tune::StudyPlace& place) {
  if (place.is_led() || !place.read().is_stopped()) return;
  tune::Tuner(place.open_store()->open(place.name), registries).resume();
}

}  // namespace

ExitCode submit_study(const Registries& registries, SlurmStudy wanted) {
  tune::Sweep sweep;
  launch::SlurmJob& job = wanted.slurm.job;
  wanted.study.may_be_led = true;
  job.program = program_path().string();
  job.is_distributed = false;
  job.arguments = args_of(registries, wanted);
  const std::string text = read_sweep(registries, wanted.study, sweep);
  if (job.name.empty()) job.name = job_name(sweep.settings.name);
  const std::string script = launch::slurm_script(job);
  if (wanted.slurm.dry_run) {
    std::fputs(script.c_str(), stdout);
    return ExitCode::kDone;
  }
  const tune::StudyPlace place = make_study(registries.tune, wanted.study, sweep, text);
  go_on(registries.tune, place);
  const std::string number = submit_job(script);
  fmt::print("study      {}\n", place.folder.string());
  if (job.array > 0) {
    fmt::print("output     slurm-{}_*.out\n", number);
  } else if (const std::string output = output_of_job(number); !output.empty()) {
    fmt::print("output     {}\n", output);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
