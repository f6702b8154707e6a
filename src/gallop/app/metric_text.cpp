#include "gallop/app/metric_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gallop::app {

std::string metric_text(const train::MetricValue& metric) {
  return metric.value ? fmt::format("{:.4f}", *metric.value) : "undefined";
}

nlohmann::ordered_json metric_json(const train::MetricValue& metric) {
  return metric.value ? nlohmann::ordered_json(*metric.value) : nlohmann::ordered_json();
}

}  // namespace gallop::app
