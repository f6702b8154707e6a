#include "gallop/tune/target_metric.h"

#include "gallop/base/text.h"

namespace gallop::tune {

std::optional<TargetMetric> parse_target_metric(std::string_view name) {
  if (!name.starts_with(kSecondsTo)) return std::nullopt;
  name.remove_prefix(kSecondsTo.size());
  const size_t blank = name.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto value = parse_number<double>(name.substr(blank + 1));
  if (!value) return std::nullopt;
  return TargetMetric{std::string(name.substr(0, blank)), *value};
}

}  // namespace gallop::tune
