#include "gallop/base/device_error.h"

#include <system_error>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop {

void throw_device_error(const fs::path& path, std::string_view what) {
  throw DeviceError(fmt::format("{}: {}", printable(path.string()), what));
}

void throw_device_error(const fs::path& path, std::string_view action, int error) {
  throw_device_error(path,
                     fmt::format("cannot {}: {}", action, std::generic_category().message(error)));
}

}  // namespace gallop
