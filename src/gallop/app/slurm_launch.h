#pragma once

#include <string>
#include <vector>

#include "gallop/app/command.h"
#include "gallop/base/error.h"

namespace gallop::app {

/// Whether the words behind 'gallop launch' ask for a job of Slurm.
bool asks_for_slurm(const std::vector<std::string>& args);

/// 'gallop launch --slurm': submits a training as a batch job (see launch/slurm_script.h) and
/// prints its number, its run and where its output goes; with --dry-run it prints the script.
/// Throws UsageError for wrong use, also of what the job would refuse in the recipe, DeviceError
/// where sbatch is not there or takes no job.
ExitCode run_slurm_launch(const Registries& registries, const std::vector<std::string>& args);

}  // namespace gallop::app
