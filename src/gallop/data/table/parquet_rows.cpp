#include "gallop/data/table/parquet_rows.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

using nlohmann::json;

// The names of a ClassLabel, or of the elements of a list of them; empty for other features.
std::vector<std::string> names_of(const json& feature) {
  if (feature.is_array() && feature.size() == 1) return names_of(feature.front());
  if (!feature.is_object()) return {};
  if (feature.contains("feature")) return names_of(feature["feature"]);
  if (feature.value("_type", json()) != "ClassLabel" || !feature.contains("names")) return {};
  std::vector<std::string> names;
  for (const json& name : feature["names"]) {
    if (!name.is_string()) return {};
    names.push_back(name.get<std::string>());
  }
  return names;
}

// The description of the features that the library `datasets` stores in the schema.
json features_of(const std::string& huggingface) {
  const json all = json::parse(huggingface, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object() || !all.contains("info") || !all["info"].is_object()) return {};
  return all["info"].value("features", json());
}

// The name of the class with a number; empty for -1, which stands for no class.
std::string class_of(std::string_view number, const std::vector<std::string>& names) {
  const auto index = parse_number<int64_t>(number);
  if (index == -1) return {};
  if (!index || *index < 0 || *index >= static_cast<int64_t>(names.size())) {
    throw DataError(fmt::format("the class '{}' is none of the {} that the file declares", number,
                                names.size()));
  }
  return names[static_cast<size_t>(*index)];
}

std::string with_names(std::string_view value, bool is_list,
                       const std::vector<std::string>& names) {
  if (!is_list) return class_of(value, names);
  std::string all;
  while (!value.empty()) {
    value.remove_prefix(1);
    const std::string_view element = value.substr(0, value.find(kListSeparator));
    all += kListSeparator + class_of(element, names);
    value.remove_prefix(element.size());
  }
  return all;
}

}  // namespace

ParquetRows::ParquetRows(std::string file) : file_(open_parquet(file)) {
  files_ = {std::move(file)};
  const json features = features_of(file_->huggingface());
  for (const ParquetColumn& column : file_->columns()) {
    names_.push_back(column.name);
    classes_.push_back(features.is_object() && features.contains(column.name)
                           ? names_of(features[column.name])
                           : std::vector<std::string>());
  }
}

bool ParquetRows::has_bytes(size_t column) const {
  return file_->columns()[column].type.find("binary") != std::string::npos;
}

void ParquetRows::rewind(const std::vector<bool>& selected) {
  for (size_t i = 0; i < selected.size(); ++i) {
    const ParquetColumn& column = file_->columns()[i];
    if (!selected[i] || (column.unread.empty() && !has_bytes(i))) continue;
    throw DataError(
        fmt::format("{}: column '{}' has no numbers or texts: {}; name it in data.ignore",
                    printable(files_[0]), printable(column.name),
                    column.unread.empty() ? "its type is " + column.type : column.unread));
  }
  selected_ = selected;
  group_ = 0;
  rows_before_ = row_ = 0;
  if (!file_->group_rows().empty()) read_group();
}

void ParquetRows::read_group() {
  values_.assign(names_.size(), {});
  for (size_t i = 0; i < names_.size(); ++i) {
    if (!selected_[i]) continue;
    values_[i] = file_->read(group_, i);
    if (!classes_[i].empty()) name_classes(i);
  }
}

void ParquetRows::name_classes(size_t column) {
  const ParquetValues& numbers = values_[column];
  ParquetValues named;
  for (size_t row = 0; row < numbers.size(); ++row) {
    try {
      if (!numbers.is_missing[row]) {
        named.bytes += with_names(numbers[row], file_->columns()[column].is_list, classes_[column]);
      }
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}:{}: column '{}': {}", printable(files_[0]),
                                  rows_before_ + static_cast<int64_t>(row) + 1,
                                  printable(names_[column]), error.what()));
    }
    named.ends.push_back(named.bytes.size());
    named.is_missing.push_back(numbers.is_missing[row]);
  }
  values_[column] = std::move(named);
}

bool ParquetRows::next(std::vector<Cell>& cells, SkipPolicy* /*skips*/) {
  const std::vector<int64_t>& rows = file_->group_rows();
  while (group_ < rows.size() && row_ == rows[group_]) {
    rows_before_ += rows[group_++];
    row_ = 0;
    if (group_ < rows.size()) read_group();
  }
  if (group_ >= rows.size()) return false;
  cells.assign(names_.size(), {});
  for (size_t i = 0; i < names_.size(); ++i) {
    if (!selected_[i]) continue;
    cells[i] = {.text = values_[i][static_cast<size_t>(row_)],
                .is_list = file_->columns()[i].is_list};
  }
  ++row_;
  return true;
}

}  // namespace gallop::data
