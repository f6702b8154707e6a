#include "gallop/tune/event.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/json_numbers.h"

namespace gallop::tune {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kKinds = {"queued",   "started", "placed",  "reported", "finished",
                               "requeued", "stopped", "resumed", "vanished", "shared"};
constexpr std::array kStates = {"waiting", "running", "complete", "pruned", "failed"};

template <size_t count>
size_t index_of(const std::array<const char*, count>& names, const std::string& name) {
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == name) return i;
  }
  throw DataError(fmt::format("not an event: '{}'", printable(name)));
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
  put("member", event.member, usual.member);
  put("last_step", event.last_step, usual.last_step);
  if (!event.point.empty()) json["point"] = config::numbers_json(event.point);
  if (!event.losses.empty()) json["losses"] = config::numbers_json(event.losses);
  if (!event.violations.empty()) json["violations"] = config::numbers_json(event.violations);
  put("text", event.text, usual.text);
  put("folder", event.folder, usual.folder);
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

Event parse_event(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    // Member by member: g++ 12 destroys those before twice where one throws within braces.
    Event event;
    event.kind = static_cast<Event::Kind>(index_of(kKinds, json.at("event")));
    event.trial = json.value("trial", event.trial);
    event.time = json.at("time");
    event.attempt = json.value("attempt", event.attempt);
    event.bracket = json.value("bracket", event.bracket);
    event.state = static_cast<TrialState>(index_of(kStates, json.value("state", "waiting")));
    event.step = json.value("step", event.step);
    event.parent = json.value("parent", event.parent);
    event.member = json.value("member", event.member);
    event.last_step = json.value("last_step", event.last_step);
    event.point = config::numbers_of(json, "point");
    event.losses = config::numbers_of(json, "losses");
    event.violations = config::numbers_of(json, "violations");
    event.text = json.value("text", "");
    event.folder = json.value("folder", "");
    return event;
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("not an event: {}", error.what()));
  }
}

}  // namespace gallop::tune
