#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gallop::tune {

/// How the metrics "seconds to METRIC NUMBER" begin: the seconds of training until another metric
/// is that good.
inline constexpr std::string_view kSecondsTo = "seconds to ";

/// What such a metric asks for.
struct TargetMetric {
  std::string metric;
  double value = 0;
};

/// Nothing where the name is none of these.
std::optional<TargetMetric> parse_target_metric(std::string_view name);

}  // namespace gallop::tune
