#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "gallop/data/table/row_reader.h"

namespace gallop::data {

/// The rows of a JSON Lines file, plain or gzip: an object on each line that is not blank. The
/// columns are the keys of all lines in the order of their first occurrence. Values are strings,
/// numbers, booleans, null (missing, as are missing keys), or lists of them.
class JsonRows final : public RowReader {
 public:
  /// Throws DataError if the file cannot be read or no line is an object.
  explicit JsonRows(std::string file);

  void rewind(const std::vector<bool>& selected) override;
  bool next(std::vector<Cell>& cells, SkipPolicy* skips) override;
  int64_t line() const override { return line_; }

 private:
  std::string content_;
  std::string_view rest_;
  int64_t line_ = 0;
  std::vector<bool> selected_;
  std::unordered_map<std::string, size_t> columns_;
  std::vector<std::string> values_;
};

}  // namespace gallop::data
