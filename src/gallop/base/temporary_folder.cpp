#include "gallop/base/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "gallop/base/device_error.h"

namespace gallop {

TemporaryFolder::TemporaryFolder(const fs::path& parent, const char* prefix) {
  // mkdtemp puts letters of its own in the place of the last six.
  std::string name = (parent / prefix).string() + "XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw_device_error(parent, "write", errno);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace gallop
