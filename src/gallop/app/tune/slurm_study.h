#pragma once

#include <string>
#include <vector>

#include "gallop/app/slurm_job.h"
#include "gallop/app/tune/new_study.h"
#include "gallop/base/error.h"

namespace gallop::app {

/// A study whose trials run in a Slurm batch job or in the elements of a job array.
struct SlurmStudy {
  SlurmArguments slurm;
  NewStudy study;
  int workers = 1;                     ///< Per process.
  std::string listen{};                ///< Empty: all addresses if there may be several hosts.
  std::vector<std::string> more_args;  ///< Further arguments of 'gallop tune'.
};

/// Creates or resumes the study and submits the job; with --dry-run prints its script. The job's
/// processes join each other: one leads, and the job ends once the study is done. Throws the errors
/// of make_study() and submit_job().
ExitCode submit_study(const Registries& registries, SlurmStudy wanted);

}  // namespace gallop::app
