#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/data/part.h"
#include "gallop/data/skips.h"

namespace gallop::data {

/// A row of a file: the values of the requested columns, in the requested order.
struct TextRow {
  std::vector<std::string> values;
  int64_t line = 0;  ///< 1-based line in its file.
  size_t file = 0;   ///< Of TextTable::files.
};

/// The rows of a text file or its shards.
struct TextTable {
  std::vector<std::string> files;
  std::vector<TextRow> rows;

  /// "FILE:LINE" of a row.
  std::string place(const TextRow& row) const;
};

/// The column names of a file, or the keys of its JSON objects, in file order.
struct TextColumns {
  std::string file;
  std::vector<std::string> names;
};

/// Reads the columns of the training split. Throws like read_text_parts().
TextColumns read_columns(const std::string& reader, const std::string& path);

/// Reads some columns of the shards of a table (see open_rows()), whose first line names the
/// columns if it is CSV. Invalid rows and values that are lists are reported to `skips` as
/// file:line. Throws DataError for another file extension, an unknown column, or if no row is left.
TextTable read_text_table(const std::vector<std::string>& files,
                          const std::vector<std::string>& columns, SkipPolicy& skips);

/// Like read_text_table(), for a file to predict. A .txt file has one column, with one text per
/// nonempty line.
TextTable read_texts_to_predict(const std::string& file, const std::vector<std::string>& columns);

/// Reads the tables of all splits; see find_part_shards(). `reader` is used in messages only. The
/// training split always exists.
std::array<std::optional<TextTable>, kParts> read_text_parts(
    const std::string& reader, const std::string& path, const std::vector<std::string>& columns,
    SkipPolicy& skips);

}  // namespace gallop::data
