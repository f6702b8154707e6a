#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gallop::data {

/// Reads a whole text file, plain or gzip, without its UTF-8 byte order mark. Throws DataError if
/// it is empty, not readable or UTF-16.
std::string read_data_file(const std::string& file);

/// Throws DataError that `file` has no column `name` and lists the columns it has.
[[noreturn]] void refuse_column(const std::string& file, const std::string& name,
                                const std::vector<std::string>& columns);

/// A value for a message: printable(), and shortened if it is long.
std::string shown_value(std::string_view value);

}  // namespace gallop::data
