#pragma once

#include <string>
#include <vector>

namespace gallop {

/// A line of CSV (RFC 4180) with its ending.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace gallop
