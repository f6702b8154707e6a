#pragma once

#include <string>
#include <vector>

#include "gallop/data/table/csv_records.h"
#include "gallop/data/table/row_reader.h"

namespace gallop::data {

/// The rows of a CSV file: plain or gzip, with a detected dialect, and names of its columns.
class CsvRows final : public RowReader {
 public:
  /// Throws DataError if the file cannot be read, is not UTF-8, or if a column's name is missing or
  /// repeated.
  CsvRows(std::string file, TableOptions options);

  bool has_semicolons() const override { return options_.separator == ';'; }
  void rewind(const std::vector<bool>& selected) override;
  bool next(std::vector<Cell>& cells, SkipPolicy* skips) override;
  int64_t line() const override { return records_.line() + lines_before_; }
  std::string place(const Cell& cell) const override;

 private:
  void choose_separator();
  void read_names();
  CsvRecords records_from(size_t offset) const;

  std::string content_;
  TableOptions options_;
  size_t first_row_ = 0;      // Byte of the first row.
  int64_t lines_before_ = 0;  // Lines before it.
  CsvRecords records_;
};

}  // namespace gallop::data
