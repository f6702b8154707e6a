#include "gallop/track/run_schedule.h"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "gallop/config/json_numbers.h"
#include "gallop/track/json_file.h"

namespace gallop::track {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFile = "schedule.json";

RunSchedule::Line line_of(const Json& json) {
  RunSchedule::Line line;
  line.metric = json.at("metric");
  line.schedule = json.at("schedule");
  line.follows_evaluations = json.at("follows_evaluations");
  line.values = config::numbers_of(json, "values");
  return line;
}

// Validates a schedule; returns the first error, or an empty text.
std::string mistake_in(const RunSchedule& schedule) {
  const auto& at = schedule.at;
  if (std::adjacent_find(at.begin(), at.end(), std::greater_equal<>()) != at.end()) {
    return "its steps are not ascending";
  }
  for (const auto& line : schedule.lines) {
    if (line.values.size() != at.size()) return "it must have one value per step";
  }
  return {};
}

}  // namespace

void write_run_schedule(const fs::path& run, const RunSchedule& schedule) {
  Json lines = Json::array();
  for (const auto& line : schedule.lines) {
    lines.push_back({{"metric", line.metric},
                     {"schedule", line.schedule},
                     {"follows_evaluations", line.follows_evaluations},
                     {"values", config::numbers_json(line.values)}});
  }
  write_json_file(run / kFile, {{"steps", schedule.steps},
                                {"steps_per_epoch", schedule.steps_per_epoch},
                                {"at", schedule.at},
                                {"lines", std::move(lines)}});
}

std::optional<RunSchedule> read_run_schedule(const fs::path& run) {
  RunSchedule schedule;
  const bool is_there = read_json_file(run / kFile, [&](const Json& json) {
    schedule.steps = json.at("steps");
    schedule.steps_per_epoch = json.at("steps_per_epoch");
    json.at("at").get_to(schedule.at);
    for (const Json& line : json.at("lines")) schedule.lines.push_back(line_of(line));
    return mistake_in(schedule);
  });
  if (!is_there) return std::nullopt;
  return schedule;
}

}  // namespace gallop::track
