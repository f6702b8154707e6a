#include "gallop/tune/remote/address.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::tune {

namespace {

using Json = nlohmann::ordered_json;
constexpr int64_t kMostBytes = 4096;
constexpr int kLastPort = 65535;

}  // namespace

void write_address(const fs::path& path, const RemoteAddress& address) {
  const Json json{{"host", address.host}, {"port", address.port}, {"token", address.token}};
  write_file_atomically(path, json.dump() + "\n", /*mode=*/0600);
}

RemoteAddress read_address(const fs::path& path) {
  try {
    const Json json = Json::parse(read_file(path, kMostBytes));
    RemoteAddress address;
    address.host = json.at("host");
    address.port = json.at("port");
    address.token = json.at("token");
    if (address.port > 0 && address.port <= kLastPort) return address;
  } catch (const Json::exception&) {
    // Falls through to the error below.
  }
  throw DataError(fmt::format("{}: not a coordinator address file", printable(path.string())));
}

}  // namespace gallop::tune
