#include "gallop/base/temporary_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "gallop/base/device_error.h"
#include "gallop/base/left_over.h"

namespace gallop {

TemporaryFolder::TemporaryFolder(const fs::path& parent, const char* prefix) {
  remove_left_folders(parent, prefix);
  for (;;) {
    // mkdtemp() replaces the last six characters.
    std::string name = (parent / prefix).string() + "XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw_device_error(parent, "write", errno);
    lock_ = FileDescriptor(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!lock_ && errno != ENOENT) throw_device_error(name, "open", errno);
    path_ = name;
    if (lock_ && lock_temporary(lock_, path_)) return;
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace gallop
