#pragma once

#include <string>
#include <vector>

#include "gallop/app/batch_finder.h"
#include "gallop/plot/plot.h"

// How `find-batch` and `batch_size: auto` show a search.
namespace gallop::app {

/// Samples per second by the batch, with marks at the fastest and the critical one, and memory.
std::vector<plot::XyPlot> batch_curves(const std::string& recipe, const FoundBatch& found);

/// All points, the marks and the suggested batch size ("batch") as one JSON object.
std::string batch_curve_json(const std::string& recipe, const FoundBatch& found);

/// Why that batch size is suggested, in short: "the smallest with 95 % of the most samples/s; ..."
std::string why_suggested(const FoundBatch& found);

}  // namespace gallop::app
