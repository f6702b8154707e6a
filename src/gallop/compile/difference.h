#pragma once

#include <string>

#include "gallop/compile/graph.h"

namespace gallop::compile {

/// Whether two constants are the same, tensors by their contents.
bool is_same(const c10::IValue& a, const c10::IValue& b);

/// How two recordings of one function differ, such as in a scalar that the host computes at each
/// call; empty if they are equal.
std::string difference(const Graph& a, const Graph& b);

}  // namespace gallop::compile
