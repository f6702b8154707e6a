#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gallop::launch {

/// The position of a process in its process group.
struct World {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  ///< On its host.
  /// The address of the store, which rank 0 serves.
  std::string host = "127.0.0.1";
  int port = 29500;
  /// The store is served by another process than rank 0, such as torchrun's agent.
  bool store_is_there = false;
  /// Differs between restarts of a job.
  std::string attempt = "0";
  std::string starter;  ///< "torchrun", "Open MPI", "Slurm" or "PMI"; empty for a single process.
};

/// Value of an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

Environment process_environment();

/// The environment variables of this process that torchrun, MPI and Slurm set to describe its place
/// in a process group. A child process without them is a single process.
std::vector<std::string> starter_variables();

/// Parses the variables of torchrun, Open MPI, Slurm's srun and PMI (MPICH, Intel MPI), in this
/// order; the first launcher found is used, as one may start the next, but srun never starts
/// mpirun's processes. The store is at MASTER_ADDR and MASTER_PORT, otherwise on the first host of
/// Slurm's step, or on this host if it has all processes. Rank 0 serves it, unless
/// TORCHELASTIC_USE_AGENT_STORE=True.
///
/// Throws UsageError, with the variables' names, if some are missing, invalid or contradictory, or
/// if fewer processes were started than by an outer launcher.
World read_world(const Environment& environment);

/// Binds this process to its part of the host's cores, unless the launcher has bound the processes
/// of the host.
void pin_to_local_cores(const World& world);

/// The index of the GPU of this process among those visible: its local rank, or the only visible
/// one. Throws DeviceError if there are too few.
int choose_gpu(const World& world, int gpus);

}  // namespace gallop::launch
