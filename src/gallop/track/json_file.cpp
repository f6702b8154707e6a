#include "gallop/track/json_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::track {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostBytes = int64_t{1} << 28;

}  // namespace

void write_json_file(const fs::path& file, const Json& json) {
  write_file_atomically(file, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

bool read_json_file(const fs::path& file, const std::function<std::string(const Json&)>& take) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return false;
  std::string wrong;
  try {
    wrong = take(Json::parse(read_file(file, kMostBytes)));
  } catch (const Json::exception& error) {
    wrong = printable(error.what());
  }
  if (!wrong.empty()) throw DataError(fmt::format("{}: {}", printable(file.string()), wrong));
  return true;
}

bool is_image_name(const std::string& name) {
  const size_t digits = name.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string::npos && name.substr(digits) == ".png";
}

}  // namespace gallop::track
