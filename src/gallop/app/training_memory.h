#pragma once

#include <cstdint>
#include <string>

#include "gallop/parallel/strategy.h"

namespace gallop::app {

/// What determines the least memory of a training on CPUs, besides activations.
struct TrainingMemory {
  int64_t parameters = 0;  ///< Bytes of those that are trained.
  int64_t state = 0;       ///< Bytes of the optimizer's state of the whole model.
  int64_t processes = 1, processes_here = 1;
  std::string strategy = "ddp";
  parallel::Shares shares{};  ///< What the strategy divides.
  /// The experts' fraction of the parameters, which parallel.name=expert divides further.
  double expert_share = 0;
  int64_t expert_parts = 1;
  bool has_blocks = false;  ///< Whether zero-3 can divide the model.
  bool has_model = false;   ///< Whether each process has the whole model already.
  /// Why each process will have the whole model at first although it keeps only a part; empty: it
  /// will not.
  std::string why_whole{};
};

/// The bytes that a process needs at least for parameters, gradients and the optimizer's state,
/// besides what it has. Negative if it frees more of its model.
int64_t further_bytes(const TrainingMemory& memory);

/// Why the training cannot fit, and what to take instead; empty if it may. `available`: bytes on
/// this host. `retained`: bytes that processes have freed and can use again, in sum.
std::string why_not_enough(const TrainingMemory& memory, int64_t available, int64_t retained);

}  // namespace gallop::app
