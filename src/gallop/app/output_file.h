#pragma once

#include <string>
#include <string_view>

namespace gallop::app {

/// Whether the file that a user names is standard output: "-" or "/dev/stdout".
bool is_standard_output(const std::string& file);

/// Writes what a user has asked for to the file that they name: to standard output, to a pipe or a
/// device as it is there, and else in one step as write_file_atomically() does, through a link to
/// where it points. Throws DeviceError.
void write_output(const std::string& file, std::string_view text);

}  // namespace gallop::app
