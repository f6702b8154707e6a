#pragma once

#include <string>
#include <string_view>

namespace gallop::app {

/// Whether the file that a user names is standard output: "-" or "/dev/stdout".
bool is_standard_output(const std::string& file);

/// Writes to a file that the user names: directly to standard output, a pipe or a device, and else
/// atomically like write_file_atomically(), following links. Throws DeviceError.
void write_output(const std::string& file, std::string_view text);

}  // namespace gallop::app
