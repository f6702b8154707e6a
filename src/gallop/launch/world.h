#pragma once

#include <functional>
#include <optional>
#include <string>

namespace gallop::launch {

/// A process among those that were started together.
struct World {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  ///< Among those of its host.
  /// Where rank 0 has the store in which all meet.
  std::string host = "127.0.0.1";
  int port = 29500;
  std::string starter;  ///< "torchrun", "Open MPI", "Slurm" or "PMI"; empty where it is alone.
};

/// Value of an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

Environment process_environment();

/// What the variables say that torchrun, Open MPI, Slurm's srun and PMI (MPICH, Intel MPI) set for
/// each process they start, in this order: the first that is there counts, as one may start the
/// next, but srun never mpirun's processes. MASTER_ADDR and MASTER_PORT say where rank 0 has the
/// store; without them it is the first host of Slurm's step, or this host where all processes are
/// on it.
///
/// Throws UsageError, which names the variables, where some are missing, are no numbers or
/// contradict each other, or where fewer processes were started than by the one that started the
/// starter.
World read_world(const Environment& environment);

}  // namespace gallop::launch
