#pragma once

#include <string>

#include "gallop/compile/graph.h"

namespace gallop::compile {

/// Whether two constants are the same, tensors by their contents.
bool is_same(const c10::IValue& a, const c10::IValue& b);

/// How two recordings of one function differ, such as a number that the host computes again at each
/// call; empty where both do the same.
std::string difference(const Graph& a, const Graph& b);

}  // namespace gallop::compile
