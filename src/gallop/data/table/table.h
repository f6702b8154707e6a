#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gallop::data {

enum class ColumnKind { kNumber, kBoolean, kDate, kCategory, kIgnored };

/// How a column of a table is read.
struct ColumnType {
  ColumnKind kind = ColumnKind::kNumber;
  std::string date_format{};  ///< One of kDateFormats.
  /// One of kNumberFormatNames, which decides about numbers that fit several of them; empty: those
  /// of the file decide.
  std::string number_format{};
  bool is_required = false;   ///< A missing value is an error, as in a target.
  bool allows_lists = false;  ///< Categories may be lists of values; see kListSeparator.
};

/// A typed column of a table. Numbers, booleans (0 or 1) and dates (seconds since 1970) are in
/// `numbers`, in which NaN is missing; categories are indices into `values`, in which -1 is
/// missing.
struct TableColumn {
  std::string name;
  ColumnType type;
  std::vector<double> numbers{};
  std::vector<int32_t> codes{};
  std::vector<std::string> values{};  ///< In the order of their first occurrence.
  bool has_times = false;             ///< A date has a time of day.
};

/// "FILE:LINE" of a row. `file_of` is empty if there is one file.
std::string place_of_row(const std::vector<std::string>& files, const std::vector<int32_t>& file_of,
                         const std::vector<int64_t>& lines, int64_t row);

/// A table in memory, of any file format: what the preprocessing reads.
struct Table {
  std::vector<std::string> files;
  std::vector<TableColumn> columns;
  std::vector<int64_t> lines{};    ///< Of each row in its file, from 1.
  std::vector<int32_t> file_of{};  ///< Of each row, an index of `files`; empty if there is one.

  int64_t rows() const { return static_cast<int64_t>(lines.size()); }
  std::string place(int64_t row) const { return place_of_row(files, file_of, lines, row); }
  /// Null if there is none of that name.
  const TableColumn* find(const std::string& name) const;
};

}  // namespace gallop::data
