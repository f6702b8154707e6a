#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "gallop/data/skips.h"
#include "gallop/data/table/row_reader.h"
#include "gallop/data/table/table.h"
#include "gallop/data/table/values.h"

namespace gallop::data {

/// What the values of a column are, over the whole file.
struct ColumnScan {
  ColumnType type;
  NumberFormat format = NumberFormat::kPoint;          ///< Of numbers.
  std::array<bool, std::size(kNumberFormats)> fits{};  ///< Which formats all numbers have.
  int64_t values = 0;                                  ///< Not missing.
  int64_t numbers = 0;                                 ///< That are numbers.
  /// If nearly all values are numbers or dates, so that the others look like mistakes, or if their
  /// decimal marks differ: the first such value.
  std::string mistake{};
  ColumnType likely{};                  ///< The type without the mistakes, if there are any.
  std::vector<std::string> distinct{};  ///< Distinct values; empty if there are more than 20.
  std::string date_format{};            ///< The one of kDateFormats that most values have.
  bool has_ambiguous_dates = false;     ///< In dates, day and month could be swapped.
  bool has_lists = false;
};

/// Reads a table in a file of any format: finds the types of its columns, and reads them.
class TableReader {
 public:
  /// Opens the file, or the shards of one table.
  TableReader(const std::vector<std::string>& files, const TableOptions& options);

  /// The first of the files.
  const std::string& file() const { return rows_->files().front(); }
  const std::vector<std::string>& files() const { return rows_->files(); }
  const std::vector<std::string>& names() const { return rows_->names(); }
  const std::vector<std::string>& notes() const { return rows_->notes(); }
  /// Returns the index of a column. Throws DataError that suggests the nearest name.
  size_t find(const std::string& name) const { return rows_->find(name); }
  bool has_bytes(size_t column) const { return rows_->has_bytes(column); }
  /// RowReader::classes().
  std::vector<std::string> classes(size_t column) const { return rows_->classes(column); }

  /// Leaves all other columns out of scan().
  void scan_only(const std::vector<std::string>& names);
  /// Finds the type of each column over all rows.
  const std::vector<ColumnScan>& scan();
  /// Reads the columns with these types, one per column. Rows that do not fit are reported to
  /// `skips` with their line and column.
  Table read(const std::vector<ColumnType>& types, SkipPolicy& skips);

 private:
  NumberFormat format_for(const ColumnType& type, size_t column) const;
  std::string wrong_value(const Cell& cell, size_t column, const ColumnType& type) const;
  bool append(const Cell& cell, const ColumnType& type, NumberFormat format,
              TableColumn& column) const;

  TableOptions options_;
  std::unique_ptr<RowReader> rows_;
  std::vector<ColumnScan> scans_;
};

}  // namespace gallop::data
