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

/// Hands out the lines of a text, without their ends.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  /// Nothing at the end.
  std::optional<std::string_view> next();
  int64_t number() const { return number_; }  ///< Of the last line, from 1.

 private:
  std::string_view rest_;
  int64_t number_ = 0;
};

/// Whether a line has nothing but spaces and tabs.
bool is_blank(std::string_view line);

/// A row of a file: the values of the columns that were asked for, in that order.
struct TextRow {
  std::vector<std::string> values;
  int64_t line = 0;  ///< Of the file, from 1.
};

/// The rows of a file of texts.
struct TextTable {
  std::string file;
  std::vector<TextRow> rows;
};

/// The names of a file's columns, or the keys of its JSON objects, in their order.
struct TextColumns {
  std::string file;
  std::vector<std::string> names;
};

/// Those of the training part; of JSON Lines, the keys of the first line that is an object. Throws
/// as read_text_parts().
TextColumns read_columns(const std::string& reader, const std::string& path);

/// Reads some columns of a .csv, .tsv or .jsonl file. The first line of CSV names the columns; a
/// line of JSON Lines is an object whose values under these keys are strings, numbers or truth
/// values. Broken lines go to `skips`, as file:line. Throws DataError for another ending, an
/// unknown column, and where no row is left.
TextTable read_text_table(const std::string& file, const std::vector<std::string>& columns,
                          SkipPolicy& skips);

/// The same of a file to predict. A .txt file has one column, a text in each line that is not
/// empty.
TextTable read_texts_to_predict(const std::string& file, const std::vector<std::string>& columns);

/// The tables of all parts; see find_part_files(). `reader` is only named. The training part is
/// there.
std::array<std::optional<TextTable>, kParts> read_text_parts(
    const std::string& reader, const std::string& path, const std::vector<std::string>& columns,
    SkipPolicy& skips);

}  // namespace gallop::data
