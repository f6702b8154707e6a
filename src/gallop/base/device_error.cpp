#include "gallop/base/device_error.h"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop {

void throw_device_error(const fs::path& path, std::string_view what) {
  throw DeviceError(fmt::format("{}: {}", printable(path.string()), what));
}

void check_machine_error(const fs::path& path, std::string_view action, int error) {
  const char* remedy = "";
  switch (error) {
    case EMFILE: remedy = "; raise the limit of open files of a process (ulimit -n)"; break;
    case ENFILE: remedy = "; raise the limit of open files of the system (fs.file-max)"; break;
    case ENOMEM: remedy = "; free memory, or raise its limit"; break;
    case EIO: remedy = "; check the disk"; break;
    case ESTALE: remedy = "; check the network file system"; break;
    default: return;
  }
  throw_device_error(
      path, fmt::format("cannot {}: {}{}", action, std::generic_category().message(error), remedy));
}

void throw_device_error(const fs::path& path, std::string_view action, int error) {
  check_machine_error(path, action, error);
  throw_device_error(path,
                     fmt::format("cannot {}: {}", action, std::generic_category().message(error)));
}

void throw_read_error(const fs::path& path, std::string_view action, int error) {
  check_machine_error(path, action, error);
  throw DataError(fmt::format("{}: cannot {}: {}", printable(path.string()), action,
                              std::generic_category().message(error)));
}

}  // namespace gallop
