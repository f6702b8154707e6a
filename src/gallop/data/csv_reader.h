#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/data/skips.h"

namespace gallop::data {

/// Parses one CSV record (RFC 4180) into its fields and advances `text` past it.
std::vector<std::string> csv_fields(std::string_view& text, char separator);

/// Reads a whole file without its UTF-8 byte order mark. Throws DataError if the file is empty or
/// cannot be read.
std::string read_data_file(const std::string& file);

/// Throws DataError that `file` has no column `name` and lists the columns it has.
[[noreturn]] void refuse_column(const std::string& file, const std::string& name,
                                const std::vector<std::string>& columns);

/// Iterates over the rows of a CSV file whose first line names the columns.
class CsvReader {
 public:
  /// Without `separator`, picks comma, semicolon or tab by frequency in the first line. Throws
  /// DataError if a column name is empty or repeated, or as read_data_file() does.
  explicit CsvReader(std::string file, std::optional<char> separator = std::nullopt);
  CsvReader(const CsvReader&) = delete;
  CsvReader& operator=(const CsvReader&) = delete;

  const std::string& file() const { return file_; }
  const std::vector<std::string>& columns() const { return columns_; }
  /// Returns the index of a column. Throws DataError that suggests the nearest name.
  size_t find(const std::string& name) const;

  /// Returns the fields of the next row, one per column, or nullopt at the end. Empty lines are
  /// skipped; rows with a wrong number of fields are reported to `skips`.
  std::optional<std::vector<std::string>> next(SkipPolicy& skips);
  /// The 1-based line on which the current row begins.
  int64_t line() const { return line_; }

 private:
  std::string file_, content_;
  std::string_view rest_;
  char separator_;
  std::vector<std::string> columns_;
  int64_t line_ = 1, next_line_ = 1;
};

}  // namespace gallop::data
