#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gallop/compile/graph_listing.h"

namespace gallop::compile {

/// Everything in a listing; times in milliseconds, shares of 1.
nlohmann::ordered_json graph_json(const GraphListing& listing);

/// An array with an object for each stage: its sizes, and by how many calls each operator has
/// become more or fewer since the stage before it.
nlohmann::ordered_json stages_json(const std::vector<GraphStage>& stages);

}  // namespace gallop::compile
