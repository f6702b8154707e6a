#pragma once

#include <cstdint>
#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/parallel/model_averager.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

struct LocalSgdConfig {
  int64_t sync_every = 8;
  int64_t warmup_steps = 0;
};

struct DiLoCoConfig {
  int64_t sync_every = 500;
  int64_t warmup_steps = 0;
  OuterOptimizer outer;
};

void visit(config::Visitor& visitor, LocalSgdConfig& config);
void visit(config::Visitor& visitor, DiLoCoConfig& config);

/// Each process trains a replica of the model by its part of each batch, and every `sync_every`
/// steps replicas become their mean (Stich, "Local SGD converges fast and communicates little",
/// ICLR 2019). The first `warmup_steps` are those of ddp (post-local SGD, Lin et al., ICLR 2020).
/// States of optimizers are not exchanged.
std::unique_ptr<Strategy> make_local_sgd(const LocalSgdConfig& config, Collectives& collectives,
                                         const ModelTensors& model);

/// As local SGD, but the mean of the differences from the last synchronization is the gradient of
/// an outer optimizer (Douillard et al., "DiLoCo: distributed low-communication training of
/// language models", 2023).
std::unique_ptr<Strategy> make_diloco(const DiLoCoConfig& config, Collectives& collectives,
                                      const ModelTensors& model);

}  // namespace gallop::parallel
