#include "gallop/app/metric_text.h"

#include <nlohmann/json.hpp>

#include "gallop/base/defined_text.h"

namespace gallop::app {

std::string metric_text(const train::MetricValue& metric) {
  return metric.value ? metric_text(*metric.value) : "undefined";
}

std::string metric_text(double value) { return defined_text(value, "{:.4f}"); }

nlohmann::ordered_json metric_json(const train::MetricValue& metric) {
  return metric.value ? nlohmann::ordered_json(*metric.value) : nlohmann::ordered_json();
}

}  // namespace gallop::app
