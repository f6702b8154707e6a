#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/parallel/ddp.h"
#include "gallop/parallel/mesh.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

struct ExpertConfig {
  int64_t expert_parallel_degree = 0;   ///< Processes that divide the experts; 0: all.
  std::string bucket = kDefaultBucket;  ///< As DdpConfig::bucket.
};

void visit(config::Visitor& visitor, ExpertConfig& config);

/// The axes dp_replicate and ep, along both of which batches are divided. Throws UsageError if the
/// degree does not divide the processes.
DeviceMesh expert_mesh(const ExpertConfig& config, int processes);

/// Expert parallelism (Lepikhin et al., "GShard", 2021): each process computes its part of every
/// batch, as in make_ddp(), but has an equal part of the experts of each layer, to which the
/// processes send each other's tokens. The gradient of an expert thus covers the tokens of all
/// processes along ep, and is summed along dp_replicate only; those of all other parameters are
/// summed as by make_ddp(). Divides the experts of the model. Throws UsageError if the model has
/// none, or the optimizer updates them as a whole.
std::unique_ptr<Strategy> make_expert(const ExpertConfig& config, Collectives& collectives,
                                      const ModelTensors& model);

}  // namespace gallop::parallel
