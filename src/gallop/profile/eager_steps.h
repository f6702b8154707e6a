#pragma once

#include <string>
#include <vector>

#include "gallop/base/trace.h"
#include "gallop/profile/profile.h"

namespace gallop::profile {

/// Finds the nodes of an eager step, in the order in which they were recorded, among the operators
/// of the trace's steps. Each one found gets its node's number in kEagerGraph, and takes the place
/// of the operators that it calls in turn. A step may have operators that are no nodes; if one
/// lacks a node, nothing is changed, and the reason is returned. Empty: all nodes were found.
std::string find_nodes(Trace& trace, const std::vector<GraphNode>& nodes);

}  // namespace gallop::profile
