#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/data/skips.h"
#include "gallop/data/table/csv_records.h"
#include "gallop/data/table/table.h"
#include "gallop/data/table/values.h"

namespace gallop::data {

/// The content of a file, plain or gzip, without its UTF-8 byte order mark. Throws DataError if it
/// is empty, not readable or UTF-16.
std::string read_table_file(const std::string& file);

/// How the text of a table is understood, as far as it is not detected.
struct CsvOptions {
  char separator = '\0';                 ///< 0: detected.
  std::string decimal = "auto";          ///< auto, point or comma.
  std::string header = "auto";           ///< auto, yes or no.
  std::vector<std::string> missing{};    ///< Further texts that stand for missing values.
  bool day_first = false;                ///< 01/02/2024 is in February.
  std::vector<std::string> unscanned{};  ///< Columns whose values are not looked at.
};

/// What the values of a column are, over the whole file.
struct ColumnScan {
  ColumnType type;
  NumberFormat format = NumberFormat::kPoint;  ///< Of numbers.
  int64_t values = 0;                          ///< Not missing.
  int64_t numbers = 0;                         ///< That are numbers.
  /// If nearly all values are numbers, so that the others look like mistakes: the first of these.
  std::string mistake{};
  std::vector<std::string> distinct{};  ///< Distinct values; empty if there are more than 20.
  bool has_ambiguous_dates = false;     ///< Day and month could be swapped.
};

/// A CSV file: plain or gzip, with a detected dialect, and names of its columns.
class CsvTable {
 public:
  /// Throws DataError if the file cannot be read, is not UTF-8, or if a column's name is missing or
  /// repeated.
  CsvTable(std::string file, CsvOptions options);
  CsvTable(const CsvTable&) = delete;
  CsvTable& operator=(const CsvTable&) = delete;

  const std::string& file() const { return file_; }
  const std::vector<std::string>& names() const { return names_; }
  /// Returns the index of a column. Throws DataError that suggests the nearest name.
  size_t find(const std::string& name) const;
  /// Remarks for the user about what was detected.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Finds the type of each column over all rows.
  const std::vector<ColumnScan>& scan();
  /// Reads the columns with these types, one per column. Rows that do not fit are reported to
  /// `skips` with their line and column.
  Table read(const std::vector<ColumnType>& types, SkipPolicy& skips);

 private:
  void read_names();
  bool row_fits(const std::vector<CsvCell>& cells, int64_t line, SkipPolicy* skips) const;
  std::string wrong_value(const CsvCell& cell, size_t column, const ColumnType& type) const;
  bool append(const CsvCell& cell, const ColumnType& type, NumberFormat format,
              TableColumn& column) const;

  std::string file_, content_;
  CsvOptions options_;
  std::vector<std::string> names_, notes_;
  size_t first_row_ = 0;          // Byte of the first row.
  int64_t lines_before_ = 0;      // Of it.
  bool has_row_numbers_ = false;  // In an unnamed first column, which is left out.
  std::vector<ColumnScan> scans_;
};

}  // namespace gallop::data
