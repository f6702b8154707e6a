#include "gallop/track/points.h"

namespace gallop::track {

std::string metric_name(const std::string& kind, const std::string& value) {
  if (kind == "evaluation") return value;
  return (kind == "step" ? "train" : kind) + "." + value;
}

bool is_point(const std::string& kind, const std::string& value) {
  return (kind != "evaluation" && kind != "step") || (value != "epoch" && value != "best");
}

void for_each_point(const Record& record, const std::function<void(const Point&)>& visit) {
  Point point{.metric = {}, .step = record.step, .time = record.time};
  for (const auto& [name, value] : record.values) {
    if (!is_point(record.kind, name)) continue;
    point.metric = metric_name(record.kind, name);
    point.value = value;
    visit(point);
  }
}

void for_each_point(const Log& log, const std::function<void(const Point&)>& visit) {
  for (const Record& record : log.current()) for_each_point(record, visit);
}

}  // namespace gallop::track
