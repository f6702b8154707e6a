#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

struct DeterministicConfig {};

void visit(config::Visitor& visitor, DeterministicConfig& config);

/// Data parallelism whose results have the same bits for any number of processes that divides 12.
/// The whole batch is cut into 12 slices, whichever processes compute them, and their gradients are
/// added in the order of one binary tree. Batch norm takes the statistics of each slice, and its
/// running statistics become the mean over slices of the values after each of them. Throws
/// UsageError for other numbers of processes.
std::unique_ptr<Strategy> make_deterministic(const DeterministicConfig& config,
                                             Collectives& collectives, const ModelTensors& model);

}  // namespace gallop::parallel
