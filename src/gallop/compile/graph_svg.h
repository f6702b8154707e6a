#pragma once

#include <string>

#include "gallop/compile/graph_listing.h"

namespace gallop::compile {

/// The listing as one SVG file for a browser, light or dark by the reader's preference: a row for
/// each node in order with a bar of its time, colored by kind, and an arc from each producer of a
/// value to its users. Pointing at a row shows the whole line and only its arcs. `title` is the
/// heading.
std::string graph_svg(const GraphListing& listing, const std::string& title);

}  // namespace gallop::compile
