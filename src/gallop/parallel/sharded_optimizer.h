#pragma once

#include <memory>

#include "gallop/optim/optimizer.h"
#include "gallop/parallel/divided_optimizer.h"
#include "gallop/parallel/parameter_shards.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

/// An optimizer whose state and updates are those of the shards of this process (Rajbhandari et
/// al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, stage 1).
/// After an update, and where averaged weights are exchanged with the trained ones, processes
/// gather the parameters. `shards` must outlive it.
std::unique_ptr<optim::Optimizer> make_sharded_optimizer(const ParameterShards& shards,
                                                         const NamedTensors& buffers,
                                                         const MakeOptimizer& make);

}  // namespace gallop::parallel
