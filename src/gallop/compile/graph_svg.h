#pragma once

#include <string>

#include "gallop/compile/graph_listing.h"

namespace gallop::compile {

/// The listing as one SVG file for a browser, light or dark as the reader has it: a row for each
/// node in order with a bar of its time, colored by kind, and an arc from each maker of a value to
/// its users. Pointing at a row shows the whole line and only its arcs. `title` stands on top.
std::string graph_svg(const GraphListing& listing, const std::string& title);

}  // namespace gallop::compile
