#include "gallop/data/text_columns.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/data/csv_reader.h"
#include "gallop/data/find.h"

namespace gallop::data {

namespace {

std::vector<std::string> endings() { return {".csv", ".tsv", ".jsonl"}; }

// The separator of a file type; nullopt if it is detected from the first line.
std::optional<char> separator_of(const std::string& file) {
  return file.ends_with(".tsv") ? std::optional('\t') : std::nullopt;
}

TextTable read_csv(const std::string& file, const std::vector<std::string>& columns,
                   SkipPolicy& skips) {
  CsvReader reader(file, separator_of(file));
  std::vector<size_t> places;
  for (const std::string& name : columns) places.push_back(reader.find(name));
  TextTable table{.file = file, .rows = {}};
  while (auto fields = reader.next(skips)) {
    TextRow row{.values = {}, .line = reader.line()};
    for (const size_t place : places) row.values.push_back((*fields)[place]);
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Returns what is wrong with a line of JSON Lines; empty if it is valid.
std::string read_object(std::string_view line, const std::vector<std::string>& columns,
                        std::vector<std::string>& values) {
  const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return "is not JSON";
  if (!object.is_object()) return "is not a JSON object";
  for (const std::string& name : columns) {
    const auto found = object.find(name);
    if (found == object.end()) {
      std::vector<std::string> keys;
      for (const auto& [key, value] : object.items()) keys.push_back(key);
      return fmt::format("has no key '{}'; its keys: {}", printable(name),
                         printable(join_names(keys, "and")));
    }
    if (found->is_string()) {
      values.push_back(found->get<std::string>());
    } else if (found->is_number() || found->is_boolean()) {
      values.push_back(found->dump());
    } else {
      return fmt::format("the value of '{}' is {}, and must be a string, a number or a truth value",
                         printable(name), found->type_name());
    }
  }
  return {};
}

TextTable read_json_lines(const std::string& file, const std::vector<std::string>& columns,
                          SkipPolicy& skips) {
  const std::string content = read_data_file(file);
  TextTable table{.file = file, .rows = {}};
  Lines lines(content);
  while (const auto line = lines.next()) {
    if (is_blank(*line)) continue;
    TextRow row{.values = {}, .line = lines.number()};
    const std::string wrong = read_object(*line, columns, row.values);
    if (wrong.empty()) {
      table.rows.push_back(std::move(row));
    } else {
      skips.add("invalid line of JSON", fmt::format("{}:{}: {}", printable(file), row.line, wrong));
    }
  }
  return table;
}

std::vector<std::string> keys_of(const std::string& file) {
  const std::string content = read_data_file(file);
  Lines lines(content);
  while (const auto line = lines.next()) {
    const auto object = nlohmann::ordered_json::parse(*line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) continue;
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    return keys;
  }
  throw DataError(printable(file) + ": has no line that is a JSON object");
}

TextTable read_lines(const std::string& file) {
  const std::string content = read_data_file(file);
  TextTable table{.file = file, .rows = {}};
  Lines lines(content);
  while (const auto line = lines.next()) {
    if (is_blank(*line)) continue;
    table.rows.push_back({.values = {std::string(*line)}, .line = lines.number()});
  }
  if (table.rows.empty()) throw DataError(printable(file) + ": has no text");
  return table;
}

}  // namespace

TextColumns read_columns(const std::string& reader, const std::string& path) {
  const std::string file = find_part_files(reader, path, endings())[0].string();
  if (file.ends_with(".jsonl")) return {.file = file, .names = keys_of(file)};
  const CsvReader csv(file, separator_of(file));
  return {.file = file, .names = csv.columns()};
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

std::optional<std::string_view> Lines::next() {
  if (rest_.empty()) return std::nullopt;
  const size_t end = std::min(rest_.find('\n'), rest_.size());
  std::string_view line = rest_.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  ++number_;
  return line;
}

TextTable read_text_table(const std::string& file, const std::vector<std::string>& columns,
                          SkipPolicy& skips) {
  const auto read = [&] {
    if (file.ends_with(".csv") || file.ends_with(".tsv")) return read_csv(file, columns, skips);
    if (file.ends_with(".jsonl")) return read_json_lines(file, columns, skips);
    throw DataError(
        fmt::format("{}: a file of texts ends in .csv, .tsv or .jsonl", printable(file)));
  };
  TextTable table = read();
  if (table.rows.empty()) throw DataError(printable(file) + ": has no rows");
  return table;
}

TextTable read_texts_to_predict(const std::string& file, const std::vector<std::string>& columns) {
  if (file.ends_with(".txt")) return read_lines(file);
  SkipPolicy skips(/*skips=*/false);
  return read_text_table(file, columns, skips);
}

std::array<std::optional<TextTable>, kParts> read_text_parts(
    const std::string& reader, const std::string& path, const std::vector<std::string>& columns,
    SkipPolicy& skips) {
  const auto paths = find_part_files(reader, path, endings());
  std::array<std::optional<TextTable>, kParts> parts;
  for (size_t i = 0; i < kParts; ++i) {
    if (!paths[i].empty()) parts[i] = read_text_table(paths[i].string(), columns, skips);
  }
  return parts;
}

}  // namespace gallop::data
