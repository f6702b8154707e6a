#pragma once

#include <string>
#include <vector>

#include "gallop/app/batch_finder.h"
#include "gallop/plot/plot.h"

// Output of `find-batch` and `batch_size: auto`.
namespace gallop::app {

/// Throughput by batch size, with marks at the fastest and the critical one, and memory.
std::vector<plot::XyPlot> batch_curves(const std::string& recipe, const FoundBatch& found);

/// All points, the marks and the suggested batch size ("batch") as one JSON object.
std::string batch_curve_json(const std::string& recipe, const FoundBatch& found);

/// A short reason for the suggestion: "the smallest with 95 % of the maximum throughput; ..."
std::string why_suggested(const FoundBatch& found);

}  // namespace gallop::app
