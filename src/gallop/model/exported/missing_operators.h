#pragma once

#include <string>
#include <vector>

#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

/// Whether a node is not called: checks of the exporting process, which fail in other formats and
/// on other devices.
bool is_dropped(const Node& node);

/// Why an operator cannot be called, after its name: "calls an operator that ...".
std::string missing_text(const Node& node);

/// The operators that LibTorch does not have, also those in regions: "node 'nms' (torchvision::nms
/// at net.py:12, in forward) calls an operator that ...".
std::vector<std::string> missing_operators(const Graph& graph);

}  // namespace gallop::model::exported
