#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/parallel/ddp.h"
#include "gallop/parallel/mesh.h"
#include "gallop/parallel/parameter_buckets.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

struct ZeroConfig {
  std::string bucket = kDefaultBucket;  ///< Bytes of gradients in one reduce-scatter.
  std::string batch_norm = "averaged";  ///< Or "synchronized": see make_ddp().
};

void visit(config::Visitor& visitor, ZeroConfig& config);

struct Zero3Config {
  ZeroConfig zero;
  /// Whether the parameters of a block are released between its forward and backward pass.
  bool reshard_after_forward = true;
  int64_t data_parallel_shard_degree = 0;  ///< Processes that divide the parameters; 0: all.
};

/// The processes along dp_shard, and the replicas of these along dp_replicate. Throws UsageError as
/// degree_of().
DeviceMesh zero3_mesh(const Zero3Config& config, int processes);

void visit(config::Visitor& visitor, Zero3Config& config);

/// The memory of zero-3 for the parameters of a model, of which only sizes, strides, types and
/// whether they are trained are read. Throws UsageError as make_zero3().
std::shared_ptr<ParameterBuckets> make_parameter_buckets(const Zero3Config& config,
                                                         const Collectives& collectives,
                                                         const ModelTensors& model);

/// ZeRO stage 1 (Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
/// models", SC 2020): data parallelism in which each process has the optimizer's state of a part of
/// the parameters only, and updates that. Gradients are reduce-scattered instead of all-reduced
/// (see make_rank_order_sums()), and the updated parameters gathered. Weights have the same bits as
/// with ddp if gradients are summed in the same order: with two processes, or with sum_order
/// "rank".
///
/// The optimizer must be made by make_sharded_optimizer() for Strategy::shards(). Throws UsageError
/// without ModelTensors::update_units.
std::unique_ptr<Strategy> make_zero1(const ZeroConfig& config, Collectives& collectives,
                                     const ModelTensors& model);

/// ZeRO stage 2: as stage 1, but a process keeps only its part of the gradients. A bucket exists
/// from its first gradient until its sum is complete. Each micro-batch is reduce-scattered, and
/// added to the part: micro-batches are summed after processes, so that only steps of one
/// micro-batch have the bits of ddp.
std::unique_ptr<Strategy> make_zero2(const ZeroConfig& config, Collectives& collectives,
                                     const ModelTensors& model);

/// When a process of a mesh that keeps a part of the optimizer's state sums gradients over
/// replicas.
enum class ReplicaSums : uint8_t {
  kInBackward,      ///< In the last backward pass of a step: zero-1.
  kInEachBackward,  ///< In that of each micro-batch: zero-2.
  kAfterPasses,     ///< After all, bucket by bucket; micro-batches have been added up before.
};

/// The stages of ZeRO along dp_shard, of the processes that have the same parameters. `option`: the
/// one that chose it, for messages. `model.divided`: parameters of which processes along tp have
/// other parts; the rest is divided alike along tp.
std::unique_ptr<Strategy> make_sharded_replicas(const std::string& option, ReplicaSums sums,
                                                Collectives& replicas, const ModelTensors& model);

/// By name, the parts of each parameter by ranks along dp_shard, as make_sharded_replicas() divides
/// them for the processes of this rank along tp.
std::map<std::string, std::vector<LogicalTensor::Part>> replica_shards(const ModelTensors& model,
                                                                       int replicas,
                                                                       size_t tp_rank);

/// ZeRO stage 3, or fully sharded data parallelism (Zhao et al., "PyTorch FSDP: experiences on
/// scaling fully sharded data parallel", VLDB 2023): as stage 2, but a process keeps only its part
/// of the parameters as well. Those of a block are gathered for its forward and backward pass; see
/// BlockGathers. Gradients and weights have the bits of stage 2.
///
/// With replicas (hybrid sharding), the processes along dp_shard gather parameters from each other,
/// and together keep all of them. Gradients, states and the update are divided among all processes,
/// so that the bits stay the same, and the updated parameters are all-gathered along dp_replicate.
///
/// Throws UsageError without ModelTensors::blocks, or if parameters are on a GPU.
std::unique_ptr<Strategy> make_zero3(const Zero3Config& config, Collectives& collectives,
                                     const ModelTensors& model);

}  // namespace gallop::parallel
