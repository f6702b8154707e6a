#pragma once

#include "gallop/compile/passes.h"

// The passes, one source each. passes.cpp has their order.
namespace gallop::compile::passes {

/// Changes in place become new values where the old one is not part of anything that stays.
void make_values(Graph& graph);

/// A call with the same arguments as an earlier one takes its results.
void merge_equal(Graph& graph);

/// A conversion to a wider format and back, or one that changes nothing, goes.
void merge_casts(Graph& graph);

/// Nodes go whose results nobody uses.
void drop_unused(Graph& graph);

/// Pointwise operators that use each other's results become one loop that is generated, compiled
/// and cached; see codegen/. Waits for the compiler, so that the same run has the same bits.
void fuse(Graph& graph, PassContext& context);

}  // namespace gallop::compile::passes
