#pragma once

#include <functional>
#include <memory>

#include "gallop/optim/optimizer.h"
#include "gallop/parallel/parameter_shards.h"

namespace gallop::parallel {

/// Makes an optimizer, with its wrappers, of these parameters and of the model's buffers.
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(
    const NamedTensors& parameters, const NamedTensors& buffers)>;

/// Tensors of these sizes, strides and types on the meta device, which take no memory: an optimizer
/// of such parameters tells how its update can be divided, and what its state is.
NamedTensors on_meta(const NamedTensors& tensors);

/// An optimizer whose state and updates are those of the shards of this process (Rajbhandari et
/// al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, stage 1).
/// After an update, and where averaged weights are exchanged with the trained ones, processes
/// gather the parameters. `shards` must outlive it.
std::unique_ptr<optim::Optimizer> make_sharded_optimizer(const ParameterShards& shards,
                                                         const NamedTensors& buffers,
                                                         const MakeOptimizer& make);

}  // namespace gallop::parallel
