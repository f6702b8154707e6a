#include "gallop/tune/event.h"

#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::tune {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kKinds = {"queued",   "started", "placed",  "reported", "finished",
                               "requeued", "stopped", "resumed", "vanished"};
constexpr std::array kStates = {"waiting", "running", "complete", "pruned", "failed"};

template <size_t count>
size_t index_of(const std::array<const char*, count>& names, const std::string& name) {
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == name) return i;
  }
  throw DataError(fmt::format("not an event: '{}'", printable(name)));
}

Json number_json(double number) {
  if (std::isfinite(number)) return number;
  return fmt::format("{}", number);
}

double number_of(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  const auto number = parse_number<double>(json.get<std::string>());
  if (!number) throw DataError(fmt::format("not a number: {}", printable(json.dump())));
  return *number;
}

Json numbers_json(const std::vector<double>& numbers) {
  Json list = Json::array();
  for (const double number : numbers) list.push_back(number_json(number));
  return list;
}

std::vector<double> numbers_of(const Json& json, const char* key) {
  std::vector<double> numbers;
  if (!json.contains(key)) return numbers;
  for (const Json& item : json.at(key)) numbers.push_back(number_of(item));
  return numbers;
}

}  // namespace

const char* state_name(TrialState state) { return kStates.at(static_cast<size_t>(state)); }

std::string to_json(const Event& event) {
  const Event usual;
  Json json{{"event", kKinds.at(static_cast<size_t>(event.kind))}, {"time", event.time}};
  const auto put = [&](const char* key, const auto& value, const auto& at_default) {
    if (value != at_default) json[key] = value;
  };
  put("trial", event.trial, usual.trial);
  put("attempt", event.attempt, usual.attempt);
  put("bracket", event.bracket, usual.bracket);
  if (event.state != usual.state) json["state"] = state_name(event.state);
  put("step", event.step, usual.step);
  put("parent", event.parent, usual.parent);
  put("last_step", event.last_step, usual.last_step);
  if (!event.point.empty()) json["point"] = numbers_json(event.point);
  if (!event.losses.empty()) json["losses"] = numbers_json(event.losses);
  if (!event.violations.empty()) json["violations"] = numbers_json(event.violations);
  put("text", event.text, usual.text);
  put("folder", event.folder, usual.folder);
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

Event parse_event(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    return {.kind = static_cast<Event::Kind>(index_of(kKinds, json.at("event"))),
            .trial = json.value("trial", int64_t{-1}),
            .time = json.at("time"),
            .attempt = json.value("attempt", 0),
            .bracket = json.value("bracket", 0),
            .state = static_cast<TrialState>(index_of(kStates, json.value("state", "waiting"))),
            .step = json.value("step", int64_t{0}),
            .parent = json.value("parent", int64_t{-1}),
            .last_step = json.value("last_step", int64_t{0}),
            .point = numbers_of(json, "point"),
            .losses = numbers_of(json, "losses"),
            .violations = numbers_of(json, "violations"),
            .text = json.value("text", ""),
            .folder = json.value("folder", "")};
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("not an event: {}", error.what()));
  }
}

}  // namespace gallop::tune
