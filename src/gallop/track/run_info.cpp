#include "gallop/track/run_info.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::track {

namespace {

using Json = nlohmann::ordered_json;

bool speaks_of_secrets(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  for (const char* word : {"token", "secret", "passw", "key"}) {
    if (lower.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::vector<std::string> without_secrets(const std::vector<std::string>& command_line) {
  constexpr const char* kHidden = "***";
  std::vector<std::string> result;
  bool hide_next = false;
  for (const std::string& argument : command_line) {
    const size_t equals = argument.find('=');
    if (hide_next) {
      result.push_back(kHidden);
      hide_next = false;
    } else if (equals != std::string::npos && speaks_of_secrets(argument.substr(0, equals))) {
      result.push_back(argument.substr(0, equals + 1) + kHidden);
    } else {
      result.push_back(argument);
      hide_next =
          argument.starts_with("--") && equals == std::string::npos && speaks_of_secrets(argument);
    }
  }
  return result;
}

std::string to_json(const RunInfo& info) {
  Json files = Json::array();
  for (const DataFile& file : info.data_files) {
    Json entry = {{"path", file.path}, {"bytes", file.bytes}};
    if (!file.checksum.empty()) entry["xxh3_128"] = file.checksum;
    files.push_back(std::move(entry));
  }
  const Json json = {{"version", info.version},
                     {"commit", info.commit},
                     {"started", info.started},
                     {"command_line", without_secrets(info.command_line)},
                     {"processes", info.processes},
                     {"hardware",
                      {{"host", info.hardware.host},
                       {"cpu_model", info.hardware.cpu_model},
                       {"cores", info.hardware.cores},
                       {"threads", info.hardware.threads},
                       {"memory_bytes", info.hardware.memory_bytes},
                       {"instruction_sets", info.hardware.instruction_sets}}},
                     {"data_files", std::move(files)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

RunInfo run_info_from_json(const std::string& text, const std::string& file_name) {
  try {
    const Json json = Json::parse(text);
    RunInfo info;
    json.at("version").get_to(info.version);
    json.at("commit").get_to(info.commit);
    json.at("started").get_to(info.started);
    json.at("command_line").get_to(info.command_line);
    info.processes = json.value("processes", 1);
    const Json& hardware = json.at("hardware");
    hardware.at("host").get_to(info.hardware.host);
    hardware.at("cpu_model").get_to(info.hardware.cpu_model);
    hardware.at("cores").get_to(info.hardware.cores);
    info.hardware.threads = hardware.value("threads", info.hardware.cores);
    hardware.at("memory_bytes").get_to(info.hardware.memory_bytes);
    hardware.at("instruction_sets").get_to(info.hardware.instruction_sets);
    for (const Json& file : json.at("data_files")) {
      info.data_files.push_back({.path = file.at("path").get<std::string>(),
                                 .bytes = file.at("bytes").get<int64_t>(),
                                 .checksum = file.value("xxh3_128", "")});
    }
    return info;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: not a run description: {}", printable(file_name),
                                printable(error.what())));
  }
}

}  // namespace gallop::track
