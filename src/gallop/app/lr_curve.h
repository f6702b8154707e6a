#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/plot/plot.h"
#include "gallop/train/lr_range_test.h"

// Output of `find-lr` and `lr: auto`.
namespace gallop::app {

/// The suggestion of each of schedule::lr_rules(), to two digits, the precision of the curve.
std::vector<std::optional<double>> suggested_lrs(const train::LrRangeTest& test);

/// The suggestion of a rule. Throws DataError if it cannot read the curve.
double suggested_lr(const std::string& rule, const train::LrRangeTestConfig& config,
                    const train::LrRangeTest& test);

/// The smoothed loss by the rate, then that of each step where it was smoothed, with a mark at each
/// suggestion.
plot::XyPlot lr_curve(const std::string& recipe, const train::LrRangeTestConfig& config,
                      const train::LrRangeTest& test);

/// Suggestions, the one of `rule` as "lr", and all points, as one JSON object.
std::string lr_curve_json(const std::string& recipe, const std::string& rule,
                          const train::LrRangeTest& test);

}  // namespace gallop::app
