#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/data/skips.h"

namespace gallop::data {

/// A line of CSV (RFC 4180), which may be quoted, in its fields. `text` is advanced behind it.
std::vector<std::string> csv_fields(std::string_view& text, char separator);

/// A file whole, without the byte order mark of UTF-8. Throws DataError where it is empty or cannot
/// be read.
std::string read_data_file(const std::string& file);

/// Throws DataError: `file` has no column `name`, with those that it has.
[[noreturn]] void refuse_column(const std::string& file, const std::string& name,
                                const std::vector<std::string>& columns);

/// The rows of a CSV file, whose first line names the columns.
class CsvReader {
 public:
  /// Without `separator`, the one of comma, semicolon and tab that the first line has most of.
  /// Throws DataError where a column has no name or that of another, and as read_data_file().
  explicit CsvReader(std::string file, std::optional<char> separator = std::nullopt);
  CsvReader(const CsvReader&) = delete;
  CsvReader& operator=(const CsvReader&) = delete;

  const std::string& file() const { return file_; }
  const std::vector<std::string>& columns() const { return columns_; }
  /// Where a column stands. Throws DataError with the nearest name.
  size_t find(const std::string& name) const;

  /// The fields of the next row, one for each column; nothing at the end. Empty lines are passed
  /// over; rows with another number of fields go to `skips`.
  std::optional<std::vector<std::string>> next(SkipPolicy& skips);
  /// The line, from 1, on which that row begins.
  int64_t line() const { return line_; }

 private:
  std::string file_, content_;
  std::string_view rest_;
  char separator_;
  std::vector<std::string> columns_;
  int64_t line_ = 1, next_line_ = 1;
};

}  // namespace gallop::data
