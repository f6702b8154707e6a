#pragma once

#include <memory>

#include "gallop/config/component.h"
#include "gallop/optim/optimizer.h"
#include "gallop/schedule/span.h"

namespace gallop::optim {

/// What a wrapper works on.
struct Wrapped {
  std::unique_ptr<Optimizer> optimizer;
  NamedTensors parameters;  ///< Those of the optimizer.
  NamedTensors buffers;     ///< Of the model: statistics of batch norm.
  schedule::RunLength length;
};

/// Builds optimizers by name around others: an average of the weights, or slow weights.
using WrapperRegistry = config::Registry<Optimizer, Wrapped>;

/// The wrappers that come with Gallop.
WrapperRegistry built_in_wrappers();

/// Puts the members of a list around an optimizer, the first innermost. Throws UsageError where
/// they contradict each other or the optimizer.
std::unique_ptr<Optimizer> wrap(const WrapperRegistry& registry, const config::ComponentList& list,
                                Wrapped wrapped);

// For sources of wrappers.

/// The step in which a wrapper acts first: `start` for those of a recipe, from 1, with its name for
/// messages. Throws UsageError where it never would before the end of the run.
int64_t first_step(const char* wrapper, const std::string& start, int64_t every,
                   const schedule::RunLength& length);

}  // namespace gallop::optim
