#pragma once

#include <cstddef>
#include <string_view>

namespace gallop::data {

/// Precedes each element of a list in the text of its cell.
inline constexpr char kListSeparator = '\x1f';

/// A value of a row of a table.
struct Cell {
  std::string_view text;  ///< Empty if it is missing.
  size_t offset = 0;      ///< Of its first byte in the content of a CSV file.
  bool is_quoted = false;
  bool is_list = false;  ///< Each element follows a kListSeparator.
};

}  // namespace gallop::data
