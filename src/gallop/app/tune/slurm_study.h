#pragma once

#include <string>
#include <vector>

#include "gallop/app/slurm_job.h"
#include "gallop/app/tune/new_study.h"
#include "gallop/base/error.h"

namespace gallop::app {

/// A study whose trials a batch job of Slurm runs, or the elements of an array of jobs.
struct SlurmStudy {
  SlurmArguments slurm;
  NewStudy study;
  int workers = 1;                     ///< Of each process.
  std::string listen{};                ///< Empty: all addresses where there may be several hosts.
  std::vector<std::string> more_args;  ///< Of 'gallop tune'.
};

/// Makes the study, or lets one that was stopped go on, and submits the job; with --dry-run prints
/// its script. The processes of the job join each other: one leads, and the job ends once the study
/// is done. Throws as make_study() and submit_job() do.
ExitCode submit_study(const Registries& registries, SlurmStudy wanted);

}  // namespace gallop::app
