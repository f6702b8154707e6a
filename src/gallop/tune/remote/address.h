#pragma once

#include <string>

#include "gallop/base/file.h"

namespace gallop::tune {

/// Where the coordinator of a study is, and what proves that a worker may take part.
struct RemoteAddress {
  std::string host;
  int port = 0;
  std::string token;
};

/// A file that only its owner can read. Throws DeviceError.
void write_address(const fs::path& path, const RemoteAddress& address);
/// Throws DataError where there is no such file, or something else is in it.
RemoteAddress read_address(const fs::path& path);

}  // namespace gallop::tune
