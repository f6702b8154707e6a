#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gallop::launch {

/// Processes of this program as a batch job of Slurm. What is empty the cluster decides.
struct SlurmJob {
  std::string name;
  int nodes = 1;
  int processes = 1;  ///< On each node.
  std::optional<int> cpus_per_process, gpus_per_node;
  std::string memory;  ///< Of each node: "64G".
  std::string time;    ///< "04:00:00" or "1-12:00:00"; see parse_time_limit().
  std::string partition, account;
  int signal_seconds = 120;               ///< From the request to save to the time limit.
  int max_restarts = 3;                   ///< Within one start of the job, where processes fail.
  std::vector<std::string> more_options;  ///< Of sbatch, as "--constraint=a100"; they count last.
  std::string program;
  /// Its command and what belongs to that. Started again, it goes on where it was.
  std::vector<std::string> arguments;
  /// Where not empty, "--name STEM-job4711" stands behind the command, the number being the job's.
  std::string run_stem{};
  /// Whether the processes train together: they meet at a port of the job's, and none goes on for
  /// long without the others.
  bool is_distributed = true;
  int array = 0;  ///< So many jobs of this kind, the elements of an array; 0: one by itself.
};

/// "HH:MM:SS" or "DAYS-HH:MM:SS" in seconds; nothing for any other text.
std::optional<int64_t> parse_time_limit(std::string_view text);

/// The script for sbatch. It starts the processes by srun, those of a team with a port for their
/// store that depends on the job. Before the time limit Slurm sends them SIGUSR1; where they end as
/// stopped (exit code 5) the job puts itself back into the queue. Where Slurm ends the job by
/// SIGTERM, as on scancel, they get the time to save, and whether it is queued again is left to
/// Slurm. Where a process fails, other than by wrong use or bad data, all are started again.
///
/// Throws UsageError that names the option of 'gallop launch --slurm' where a value cannot be.
std::string slurm_script(const SlurmJob& job);

}  // namespace gallop::launch
