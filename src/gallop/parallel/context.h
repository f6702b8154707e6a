#pragma once

#include <cstdint>
#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/parallel/ddp.h"
#include "gallop/parallel/mesh.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

struct ContextConfig {
  int64_t context_parallel_degree = 0;              ///< Processes that divide the tokens; 0: all.
  std::string context_parallel_method = "ulysses";  ///< Or "ring"; see ContextMethod.
  std::string bucket = kDefaultBucket;              ///< As DdpConfig::bucket.
};

void visit(config::Visitor& visitor, ContextConfig& config);

/// The axes dp_replicate and cp. Throws UsageError if the degree does not divide the processes.
DeviceMesh context_mesh(const ContextConfig& config, int processes);

/// Context parallelism: each process computes all layers for a part of the tokens of each text, so
/// that activations are divided. In attention, processes have some of the heads, or keys and values
/// pass around the ring of processes; see ContextMethod. With a degree, groups of so many processes
/// have their parts of every batch. All processes have the whole model, and gradients are summed
/// over all of them as by make_ddp(). Divides the tokens of the model. Throws UsageError if the
/// model does not support it.
std::unique_ptr<Strategy> make_context(const ContextConfig& config, Collectives& collectives,
                                       const ModelTensors& model);

}  // namespace gallop::parallel
