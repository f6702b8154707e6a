#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gallop::launch {

/// A Slurm batch job that runs processes of this program. Empty values use the cluster's defaults.
struct SlurmJob {
  std::string name;
  int nodes = 1;
  int processes = 1;  ///< Per node.
  std::optional<int> cpus_per_process, gpus_per_node;
  std::string memory;  ///< Per node: "64G".
  std::string time;    ///< "04:00:00" or "1-12:00:00"; see parse_time_limit().
  std::string partition, account;
  int signal_seconds = 120;  ///< Between the request to save and the time limit.
  int max_restarts = 3;      ///< Restarts after failed processes, per start of the job.
  /// Further sbatch options, such as "--constraint=a100"; they take precedence.
  std::vector<std::string> more_options;
  std::string program;
  /// The command with its arguments. After a restart it must resume.
  std::vector<std::string> arguments;
  /// If not empty, "--name STEM-job4711" with the job's id is appended to the command.
  std::string run_stem{};
  /// Whether the processes train together: they rendezvous at a port derived from the job, and end
  /// soon after one of them.
  bool is_distributed = true;
  int array = 0;  ///< Number of array elements, each such a job; 0: a single job.
};

/// "HH:MM:SS" or "DAYS-HH:MM:SS" in seconds; nothing for any other text.
std::optional<int64_t> parse_time_limit(std::string_view text);

/// The sbatch script. It starts the processes with srun; distributed ones get a port for their
/// store that is derived from the job. Slurm sends them SIGUSR1 before the time limit; if they end
/// as stopped (exit code 5), the job requeues itself. If Slurm ends the job with SIGTERM, as
/// scancel does, they get time to save, and requeueing is left to Slurm. If a process fails, except
/// for invalid usage or bad data, all are restarted.
///
/// Throws UsageError, with the option of 'gallop launch --slurm', for an invalid value.
std::string slurm_script(const SlurmJob& job);

}  // namespace gallop::launch
