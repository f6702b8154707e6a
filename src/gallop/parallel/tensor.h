#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/parallel/mesh.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

struct TensorConfig {
  bool sequence_parallel = false;
  std::vector<std::string> tp_plan{};  ///< Of exported programs; see TensorGroup::tp_plan().
  int64_t tensor_parallel_degree = 0;  ///< Processes that divide the layers; 0: all.
  std::string data_parallel = "ddp";   ///< How replicas share the update; or "zero-1", "zero-2".
};

void visit(config::Visitor& visitor, TensorConfig& config);

/// The axes dp_replicate or dp_shard, and tp. Throws UsageError if the degree does not divide the
/// processes.
DeviceMesh tensor_mesh(const TensorConfig& config, int processes);

/// Tensor parallelism (Shoeybi et al., "Megatron-LM", 2019): each process has some of the heads and
/// channels of each layer, and all compute each batch together. With sequence_parallel, what
/// remains whole is computed for a part of the tokens in each process (Korthikanti et al., 2022).
/// With a degree, groups of so many processes are replicas, each with its part of every batch,
/// whose gradients are summed as by make_ddp(), or as by make_zero1() or make_zero2(), so that each
/// updates a part of the parameters. Divides the model. A single process has all of it, as with
/// make_ddp(). Throws UsageError if the processes cannot divide the model or the optimizer's
/// update.
std::unique_ptr<Strategy> make_tensor(const TensorConfig& config, Collectives& collectives,
                                      const ModelTensors& model);

}  // namespace gallop::parallel
