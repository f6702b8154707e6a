#pragma once

#include <optional>
#include <string>

#include "gallop/launch/slurm_script.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace gallop::app {

/// What is said of a batch job of Slurm on a command line.
struct SlurmArguments {
  launch::SlurmJob job;
  std::optional<int> processes;  ///< On each node.
  bool is_wanted = false;        ///< --slurm
  bool dry_run = false;

  void add_to(CLI::App& parser);
  /// To be called once the command line was read.
  void finish() { job.processes = processes.value_or(job.gpus_per_node.value_or(1)); }
};

/// The name in letters that mean nothing to sbatch.
std::string job_name(std::string name);

/// Has sbatch take the script, and prints the number of the job, which it returns. Throws
/// DeviceError where sbatch is not there or takes no job.
std::string submit_job(const std::string& script);

/// Where the output of a job goes as Slurm says, whose own environment variables may have changed
/// it; empty where it does not.
std::string output_of_job(const std::string& number);

}  // namespace gallop::app
