#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gallop::tune {

/// Prefix of the metrics "seconds to METRIC NUMBER": the seconds of training until another metric
/// reaches that value.
inline constexpr std::string_view kSecondsTo = "seconds to ";

/// The parts of such a metric.
struct TargetMetric {
  std::string metric;
  double value = 0;
};

/// Parses such a name; nothing for other names.
std::optional<TargetMetric> parse_target_metric(std::string_view name);

}  // namespace gallop::tune
