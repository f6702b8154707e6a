#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/data/skips.h"
#include "gallop/data/table/cell.h"

namespace gallop::data {

/// Iterates over the rows of a table in a file of any format, whose values are text.
class RowReader {
 public:
  RowReader() = default;
  virtual ~RowReader() = default;
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  /// The files, in order; shards of one table have several.
  const std::vector<std::string>& files() const { return files_; }
  /// The index in files() of the file of the current row.
  virtual size_t file_index() const { return 0; }
  const std::vector<std::string>& names() const { return names_; }
  /// Returns the index of a column. Throws DataError that suggests the nearest name.
  size_t find(const std::string& name) const;
  /// Remarks for the user about what was detected.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Whether fields are separated by semicolons, as where commas are decimal marks.
  virtual bool has_semicolons() const { return false; }
  /// Whether a column has bytes, such as those of image files, which are no text.
  virtual bool has_bytes(size_t /*column*/) const { return false; }
  /// The names of the classes of a column, in order, if the file declares them.
  virtual std::vector<std::string> classes(size_t /*column*/) const { return {}; }

  /// Begins again with the first row. The cells of columns that are not selected may be empty.
  virtual void rewind(const std::vector<bool>& selected) = 0;
  /// Reads the next row, with one cell per column, valid until the next call. False at the end.
  /// Rows that are invalid are reported to `skips`; if it is null, they are passed over.
  virtual bool next(std::vector<Cell>& cells, SkipPolicy* skips) = 0;
  /// The 1-based line of the current row in its file; the row, if the file has no lines.
  virtual int64_t line() const = 0;
  /// "FILE:LINE:COLUMN" or "FILE:LINE" of a cell of the current row, for messages.
  virtual std::string place(const Cell& cell) const;

 protected:
  std::vector<std::string> files_, names_, notes_;
};

/// How a table is read, as far as it is not detected.
struct TableOptions {
  char separator = '\0';                 ///< Of fields of CSV; 0: detected.
  std::string decimal = "auto";          ///< auto, point or comma.
  std::string header = "auto";           ///< Of CSV: auto, yes or no.
  std::vector<std::string> missing{};    ///< Further texts that stand for missing values.
  bool day_first = false;                ///< 01/02/2024 is in February.
  std::vector<std::string> unscanned{};  ///< Columns whose values are not looked at.
  /// Blanks around the fields of CSV are part of them, and the file may have any encoding.
  bool is_raw = false;
};

/// Opens a table by the ending of its name: CSV, TSV, JSON Lines or Parquet. Several files are the
/// shards of one table and must have the same columns. Throws DataError.
std::unique_ptr<RowReader> open_rows(const std::vector<std::string>& files,
                                     const TableOptions& options);

}  // namespace gallop::data
