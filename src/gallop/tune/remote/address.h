#pragma once

#include <string>

#include "gallop/base/file.h"

namespace gallop::tune {

/// The address of a study's coordinator, and the token that authenticates workers.
struct RemoteAddress {
  std::string host;
  int port = 0;
  std::string token;
};

/// Writes a file that only its owner can read. Throws DeviceError.
void write_address(const fs::path& path, const RemoteAddress& address);
/// Throws DataError if the file is missing or invalid.
RemoteAddress read_address(const fs::path& path);

}  // namespace gallop::tune
