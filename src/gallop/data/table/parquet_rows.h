#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/data/parquet_file.h"
#include "gallop/data/table/row_reader.h"

namespace gallop::data {

/// The rows of a Parquet file, of one row group after the other. Columns are the leaves of its
/// schema; the values of ClassLabel columns of Hugging Face datasets are the names of the classes.
class ParquetRows final : public RowReader {
 public:
  explicit ParquetRows(std::string file);

  bool has_bytes(size_t column) const override;
  std::vector<std::string> classes(size_t column) const override { return classes_[column]; }
  /// Throws DataError if a selected column has values that cannot be text.
  void rewind(const std::vector<bool>& selected) override;
  bool next(std::vector<Cell>& cells, SkipPolicy* skips) override;
  int64_t line() const override { return rows_before_ + row_; }

 private:
  void read_group();
  void name_classes(size_t column);

  std::shared_ptr<const ParquetFile> file_;
  std::vector<std::vector<std::string>> classes_;
  std::vector<bool> selected_;
  size_t group_ = 0;
  int64_t rows_before_ = 0;            // Rows before the current group.
  int64_t row_ = 0;                    // In it, from 1.
  std::vector<ParquetValues> values_;  // Values of each selected column in the current group.
};

}  // namespace gallop::data
