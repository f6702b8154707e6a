#pragma once

#include <string>
#include <vector>

namespace gallop {

/// A line of CSV (RFC 4180) with its ending. What a spreadsheet would take for a formula ("=1+1" as
/// a name) gets an apostrophe before it; numbers do not.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace gallop
