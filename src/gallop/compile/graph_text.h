#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gallop/compile/graph_listing.h"

namespace gallop::compile {

/// "143 nodes, 12.340 ms (medians of 30 runs); temporaries: 12.3 MiB planned, 11.9 MiB most in
/// use", then the kinds of nodes and the slowest operators with their fractions, a line each.
std::string summary_text(const GraphListing& listing, size_t most_operators = 12);

/// A line for each node: number, median milliseconds, percentage of the total, results, operator
/// and arguments. Lists are truncated, and lines end at `width` columns; 0: nothing is truncated.
std::string nodes_text(const GraphListing& listing, size_t width = 120);

/// A line for each stage: nodes, milliseconds, memory, and the change in the number of calls of
/// each operator since the previous stage.
std::string stages_text(const std::vector<GraphStage>& stages, size_t width = 120);

}  // namespace gallop::compile
