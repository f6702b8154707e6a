#pragma once

#include <memory>

#include "gallop/config/component.h"
#include "gallop/optim/optimizer.h"
#include "gallop/schedule/span.h"

namespace gallop::optim {

/// The arguments of a wrapper.
struct Wrapped {
  std::unique_ptr<Optimizer> optimizer;
  NamedTensors parameters;  ///< The optimizer's.
  NamedTensors buffers;     ///< The model's batch norm statistics.
  schedule::RunLength length;
};

/// Creates wrappers of optimizers by name: weight averages, or slow weights.
using WrapperRegistry = config::Registry<Optimizer, Wrapped>;

/// The built-in wrappers.
WrapperRegistry built_in_wrappers();

/// Wraps an optimizer with the members of a list, the first innermost. Throws UsageError if they
/// conflict with each other or the optimizer.
std::unique_ptr<Optimizer> wrap(const WrapperRegistry& registry, const config::ComponentList& list,
                                Wrapped wrapped);

// For sources of wrappers.

/// The step, from 1, at which a wrapper first acts, from the recipe's `start`; `wrapper` is used in
/// messages. Throws UsageError if the run ends before it.
int64_t first_step(const char* wrapper, const std::string& start, int64_t every,
                   const schedule::RunLength& length);

}  // namespace gallop::optim
