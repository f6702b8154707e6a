#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gallop/compile/graph_listing.h"

namespace gallop::compile {

/// The complete listing; times in milliseconds, fractions of 1.
nlohmann::ordered_json graph_json(const GraphListing& listing);

/// An array with an object for each stage: its sizes, and the change in the number of calls of each
/// operator since the previous stage.
nlohmann::ordered_json stages_json(const std::vector<GraphStage>& stages);

}  // namespace gallop::compile
