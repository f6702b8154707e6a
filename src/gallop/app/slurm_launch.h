#pragma once

#include <string>
#include <vector>

#include "gallop/app/command.h"
#include "gallop/base/error.h"

namespace gallop::app {

/// Whether the arguments of 'gallop launch' request a Slurm job.
bool asks_for_slurm(const std::vector<std::string>& args);

/// 'gallop launch --slurm': submits a training as a batch job (see launch/slurm_script.h) and
/// prints its number, its run and its output file; with --dry-run it prints the script. Throws
/// UsageError for invalid usage, including recipe errors that the job would have, DeviceError if
/// sbatch is missing or rejects the job.
ExitCode run_slurm_launch(const Registries& registries, const std::vector<std::string>& args);

}  // namespace gallop::app
