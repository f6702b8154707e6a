#pragma once

#include <optional>
#include <string>

#include "gallop/launch/slurm_script.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace gallop::app {

/// Options of a Slurm batch job on a command line.
struct SlurmArguments {
  launch::SlurmJob job;
  std::optional<int> processes;  ///< On each node.
  bool is_wanted = false;        ///< --slurm
  bool dry_run = false;

  void add_to(CLI::App& parser);
  /// Must be called after parsing.
  void finish() { job.processes = processes.value_or(job.gpus_per_node.value_or(1)); }
};

/// The name without characters that are special to sbatch.
std::string job_name(std::string name);

/// Submits the script by sbatch, prints the job number and returns it. Throws DeviceError if sbatch
/// is not installed or rejects the job.
std::string submit_job(const std::string& script);

/// The output file of a job as reported by Slurm, whose environment variables may have changed it;
/// empty if it reports none.
std::string output_of_job(const std::string& number);

}  // namespace gallop::app
