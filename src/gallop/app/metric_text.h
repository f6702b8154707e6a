#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "gallop/train/metrics/metric.h"

namespace gallop::app {

/// "0.8123", or "undefined".
std::string metric_text(const train::MetricValue& metric);
/// The same for a loss or another value that may be NaN.
std::string metric_text(double value);

/// Null if it is undefined.
nlohmann::ordered_json metric_json(const train::MetricValue& metric);

}  // namespace gallop::app
