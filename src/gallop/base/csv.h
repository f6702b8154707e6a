#pragma once

#include <string>
#include <vector>

namespace gallop {

/// A line of CSV (RFC 4180) with its line ending. A text that a spreadsheet would evaluate as a
/// formula ("=1+1" as a name) is prefixed with an apostrophe; numbers are not.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace gallop
