#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace gallop::app {

/// A JSON value in one line, without an end of line. Bytes that are not UTF-8, as file names may
/// have, become U+FFFD.
template <typename Json>
std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gallop::app
