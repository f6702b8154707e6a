#pragma once

#include <string_view>

#include "gallop/base/error.h"
#include "gallop/base/file.h"

namespace gallop {

/// Throws DeviceError: "PATH: WHAT".
[[noreturn]] void throw_device_error(const fs::path& path, std::string_view what);
/// Throws DeviceError: "PATH: cannot ACTION: REASON", with the reason of the errno value, and the
/// remedy if it is about the machine.
[[noreturn]] void throw_device_error(const fs::path& path, std::string_view action, int error);

/// Throws DeviceError if the errno value is about the machine, as too many open files or a failing
/// disk, otherwise DataError: "PATH: cannot ACTION: REASON".
[[noreturn]] void throw_read_error(const fs::path& path, std::string_view action, int error);
/// Throws DeviceError, with the remedy, if the errno value is about the machine.
void check_machine_error(const fs::path& path, std::string_view action, int error);

}  // namespace gallop
