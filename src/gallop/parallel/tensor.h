#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

struct TensorConfig {
  bool sequence_parallel = false;
};

void visit(config::Visitor& visitor, TensorConfig& config);

/// Tensor parallelism (Shoeybi et al., "Megatron-LM", 2019): each process has some of the heads and
/// channels of each layer, and all compute each batch together. With sequence_parallel, what
/// remains whole is computed for a part of the tokens in each process (Korthikanti et al., 2022).
/// Divides the model. A single process has all of it, as with make_ddp(). Throws UsageError if the
/// processes cannot divide the model or the optimizer's update.
std::unique_ptr<Strategy> make_tensor(const TensorConfig& config, Collectives& collectives,
                                      const ModelTensors& model);

}  // namespace gallop::parallel
