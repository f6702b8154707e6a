#include "gallop/data/text_columns.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_file.h"
#include "gallop/data/find.h"
#include "gallop/data/skip_summary.h"
#include "gallop/data/table.h"
#include "gallop/data/table/row_reader.h"
#include "gallop/data/text_lines.h"

namespace gallop::data {

namespace {

std::unique_ptr<RowReader> open_texts(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (is_table_file(file)) continue;
    throw DataError(fmt::format("{}: a file of texts ends in {}", printable(file),
                                join_names(table_endings(), "or")));
  }
  const bool is_tsv = files.front().find(".tsv") != std::string::npos;
  return open_rows(files, {.separator = is_tsv ? '\t' : '\0', .header = "yes", .is_raw = true});
}

TextTable read_lines(const std::string& file) {
  const std::string content = read_data_file(file);
  TextTable table{.files = {file}, .rows = {}};
  Lines lines(content);
  while (const auto line = lines.next()) {
    if (is_blank(*line)) continue;
    table.rows.push_back({.values = {std::string(*line)}, .line = lines.number()});
  }
  if (table.rows.empty()) throw DataError(printable(file) + ": has no text");
  return table;
}

}  // namespace

std::string TextTable::place(const TextRow& row) const {
  return fmt::format("{}:{}", files[row.file], row.line);
}

TextColumns read_columns(const std::string& reader, const std::string& path) {
  const auto files = find_part_shards(reader, path, table_endings())[0];
  return {.file = files.front(), .names = open_texts(files)->names()};
}

TextTable read_text_table(const std::vector<std::string>& files,
                          const std::vector<std::string>& columns, SkipPolicy& skips) {
  const std::unique_ptr<RowReader> rows = open_texts(files);
  std::vector<size_t> places;
  std::vector<bool> selected(rows->names().size());
  for (const std::string& name : columns) {
    places.push_back(rows->find(name));
    selected[places.back()] = true;
  }
  TextTable table{.files = files, .rows = {}};
  rows->rewind(selected);
  std::vector<Cell> cells;
  while (rows->next(cells, &skips)) {
    TextRow row{.values = {}, .line = rows->line(), .file = rows->file_index()};
    std::string wrong;
    for (size_t i = 0; i < places.size(); ++i) {
      const Cell& cell = cells[places[i]];
      row.values.emplace_back(cell.text);
      if (!cell.is_list || !wrong.empty()) continue;
      wrong = fmt::format("{}: the value of '{}' is a list, but must be a string",
                          rows->place(cell), printable(columns[i]));
    }
    if (wrong.empty()) {
      table.rows.push_back(std::move(row));
    } else {
      skips.add("list in place of a text", wrong);
    }
  }
  if (table.rows.empty()) {
    throw DataError(fmt::format("{}: has no {}rows{}", printable(files.front()),
                                skips.counts().empty() ? "" : "usable ", skip_summary(skips)));
  }
  return table;
}

TextTable read_texts_to_predict(const std::string& file, const std::vector<std::string>& columns) {
  if (file.ends_with(".txt")) return read_lines(file);
  SkipPolicy skips(/*skips=*/false);
  return read_text_table({file}, columns, skips);
}

std::array<std::optional<TextTable>, kParts> read_text_parts(
    const std::string& reader, const std::string& path, const std::vector<std::string>& columns,
    SkipPolicy& skips) {
  const auto files = find_part_shards(reader, path, table_endings());
  std::array<std::optional<TextTable>, kParts> parts;
  for (size_t i = 0; i < kParts; ++i) {
    if (!files[i].empty()) parts[i] = read_text_table(files[i], columns, skips);
  }
  return parts;
}

}  // namespace gallop::data
