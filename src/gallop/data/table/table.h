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
  bool is_required = false;   ///< A missing value is an error, as in a target.
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

/// A table in memory, of any file format: what the preprocessing reads.
struct Table {
  std::string file;
  std::vector<TableColumn> columns;
  std::vector<int64_t> lines{};  ///< Of each row in the file, from 1.

  int64_t rows() const { return static_cast<int64_t>(lines.size()); }
  /// Null if there is none of that name.
  const TableColumn* find(const std::string& name) const;
};

}  // namespace gallop::data
