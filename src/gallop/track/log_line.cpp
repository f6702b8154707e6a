#include "gallop/track/log_line.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/config/json_numbers.h"

namespace gallop::track {

namespace {

using Json = nlohmann::ordered_json;

std::string checksum(std::string_view text) { return fmt::format("{:016x}", xxh3_64(text)); }

}  // namespace

std::string line_of(const Record& record) {
  Json json = {{"session", record.session},
               {"step", record.step},
               {"time", record.time},
               {"kind", record.kind}};
  for (const auto& [name, value] : record.values) json["values"][name] = config::number_json(value);
  for (const auto& [name, text] : record.texts) json["texts"][name] = text;
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return fmt::format("{}\t{}\n", text, checksum(text));
}

std::optional<Record> record_of(std::string_view line) {
  if (line.size() < kChecksumDigits + 1 || line[line.size() - kChecksumDigits - 1] != '\t')
    return std::nullopt;
  const std::string_view text = line.substr(0, line.size() - kChecksumDigits - 1);
  if (line.substr(line.size() - kChecksumDigits) != checksum(text)) return std::nullopt;
  try {
    const Json json = Json::parse(text);
    Record record;
    json.at("session").get_to(record.session);
    json.at("step").get_to(record.step);
    json.at("time").get_to(record.time);
    json.at("kind").get_to(record.kind);
    const Json values = json.value("values", Json::object());
    for (const auto& [name, value] : values.items()) record.values[name] = config::number_of(value);
    if (json.contains("texts")) json.at("texts").get_to(record.texts);
    return record;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const DataError&) {  // A text that is no number.
    return std::nullopt;
  }
}

}  // namespace gallop::track
