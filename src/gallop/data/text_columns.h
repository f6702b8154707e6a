#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/data/part.h"
#include "gallop/data/skips.h"

namespace gallop::data {

/// Iterates over the lines of a text, without line ends.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  /// Returns the next line, or nullopt at the end.
  std::optional<std::string_view> next();
  int64_t number() const { return number_; }  ///< 1-based number of the last line.

 private:
  std::string_view rest_;
  int64_t number_ = 0;
};

/// Whether a line consists of spaces and tabs only.
bool is_blank(std::string_view line);

/// A row of a file: the values of the requested columns, in the requested order.
struct TextRow {
  std::vector<std::string> values;
  int64_t line = 0;  ///< 1-based line in the file.
};

/// The rows of a text file.
struct TextTable {
  std::string file;
  std::vector<TextRow> rows;
};

/// The column names of a file, or the keys of its JSON objects, in file order.
struct TextColumns {
  std::string file;
  std::vector<std::string> names;
};

/// Reads the columns of the training split; for JSON Lines, the keys of the first line that is an
/// object. Throws like read_text_parts().
TextColumns read_columns(const std::string& reader, const std::string& path);

/// Reads some columns of a .csv, .tsv or .jsonl file. The first line of CSV names the columns; each
/// line of JSON Lines is an object whose values for these keys are strings, numbers or booleans.
/// Invalid lines are reported to `skips` as file:line. Throws DataError for another file extension,
/// an unknown column, or if no row is left.
TextTable read_text_table(const std::string& file, const std::vector<std::string>& columns,
                          SkipPolicy& skips);

/// Like read_text_table(), for a file to predict. A .txt file has one column, with one text per
/// nonempty line.
TextTable read_texts_to_predict(const std::string& file, const std::vector<std::string>& columns);

/// Reads the tables of all splits; see find_part_files(). `reader` is used in messages only. The
/// training split always exists.
std::array<std::optional<TextTable>, kParts> read_text_parts(
    const std::string& reader, const std::string& path, const std::vector<std::string>& columns,
    SkipPolicy& skips);

}  // namespace gallop::data
