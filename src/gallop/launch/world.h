#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gallop::launch {

/// A process among those that were started together.
struct World {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  ///< Among those of its host.
  /// Where rank 0 has the store in which all meet.
  std::string host = "127.0.0.1";
  int port = 29500;
  bool store_is_there = false;  ///< Another process than rank 0 has it, as the agent of torchrun.
  /// Differs from one start of a job to the next.
  std::string attempt = "0";
  std::string starter;  ///< "torchrun", "Open MPI", "Slurm" or "PMI"; empty where it is alone.
};

/// Value of an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

Environment process_environment();

/// Names of the variables of this process that are its starter's: those by which torchrun, MPI and
/// Slurm tell a process who it is among the others, and what goes with them. What this process
/// starts without them is alone.
std::vector<std::string> starter_variables();

/// What the variables say that torchrun, Open MPI, Slurm's srun and PMI (MPICH, Intel MPI) set for
/// each process they start, in this order: the first that is there counts, as one may start the
/// next, but srun never mpirun's processes. MASTER_ADDR and MASTER_PORT say where the store
/// is; without them it is on the first host of Slurm's step, or on this host where all processes
/// are on it. Rank 0 has it, but with TORCHELASTIC_USE_AGENT_STORE=True.
///
/// Throws UsageError, which names the variables, where some are missing, are no numbers or
/// contradict each other, or where fewer processes were started than by the one that started the
/// starter.
World read_world(const Environment& environment);

/// Which of the GPUs that this process sees is its own: the one with its number on its host, or the
/// single one that its starter lets it see. Throws DeviceError where there are too few.
int choose_gpu(const World& world, int gpus);

}  // namespace gallop::launch
