#include "gallop/data/image_targets.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/data_file.h"
#include "gallop/data/table/encoder.h"
#include "gallop/data/table/target_task.h"

namespace gallop::data {

namespace {

using Names = std::vector<std::string>;

std::string unknown_class(const std::string& name) {
  return fmt::format("class '{}' does not occur in the training split", shown_value(name));
}

bool is_missing(const TableColumn& column, size_t row) {
  return column.codes.empty() ? std::isnan(column.numbers[row]) : column.codes[row] < 0;
}

}  // namespace

void ImageTargets::choose(TableReader& file, const std::string& image, Names& notes) {
  if (!config_.target.empty() && !config_.targets.empty()) {
    throw UsageError("data.target and data.targets are both set; use one of them");
  }
  columns_ = config_.target.empty() ? config_.targets : Names{config_.target};
  for (const std::string& name : columns_) file.find(name);
  Names others;
  for (const std::string& name : file.names()) {
    if (name.empty() || name == image || name.starts_with(image + ".")) continue;
    if (columns_.empty() && (name == "label" || name == "labels")) columns_ = {name};
    if (name != context_.config.group) others.push_back(name);
  }
  if (columns_.empty() && others.size() == 1) columns_ = others;
  if (columns_.empty()) {
    throw DataError(fmt::format(
        "{}: which column is to be predicted? It has {}; set data.target, or data.targets",
        printable(file.file()), printable(join_names(others, "and"))));
  }
  choose_task_of(file, notes);
}

void ImageTargets::choose_task_of(TableReader& file, Names& notes) {
  file.scan_only(columns_);
  const std::vector<ColumnScan>& scans = file.scan();
  std::vector<const ColumnScan*> found;
  for (const std::string& name : columns_) found.push_back(&scans[file.find(name)]);
  const ColumnScan& first = *found[0];
  declared_ = file.classes(file.find(columns_[0]));
  std::string natural = natural_task(found, /*numbers_only=*/false);
  if (!declared_.empty() && columns_.size() == 1) natural = "classification";
  if (first.has_lists) natural = "multi-label";
  Names tasks = {natural};
  for (const char* task : {"classification", "multi-label", "regression", "count-regression"}) {
    if (natural != task) tasks.emplace_back(task);
  }
  task_ = choose_task(context_.config, tasks);
  if (is_class() && columns_.size() != 1) {
    throw UsageError(
        fmt::format("data.task: classification predicts one column, but data.targets names {}",
                    columns_.size()));
  }
  if (is_class() && first.type.kind == ColumnKind::kNumber && context_.config.task == "auto") {
    notes.push_back(
        fmt::format("target '{}' has integers, which are taken as classes; data.task: "
                    "regression takes them as numbers",
                    printable(columns_[0])));
  }
}

ColumnType ImageTargets::type(bool is_required) const {
  if (is_class()) return {.kind = ColumnKind::kCategory, .is_required = is_required};
  if (has_label_lists()) return {.kind = ColumnKind::kCategory, .allows_lists = true};
  return {.kind = ColumnKind::kNumber, .is_required = is_required};
}

Names ImageTargets::labels_in(const std::string& text) const {
  const bool is_list = text.starts_with(kListSeparator);
  const std::string separator = is_list ? std::string(1, kListSeparator) : config_.label_separator;
  Names labels;
  for (size_t at = 0; at < text.size();) {
    size_t end = separator.empty() ? text.size() : text.find(separator, at);
    end = std::min(end, text.size());
    const std::string_view label = std::string_view(text).substr(at, end - at);
    const size_t first = label.find_first_not_of(' ');
    if (first != std::string_view::npos) {
      labels.emplace_back(label.substr(first, label.find_last_not_of(' ') + 1 - first));
    }
    at = end + separator.size();
  }
  return labels;
}

void ImageTargets::set_classes(const Table& table) {
  if (predicts_numbers()) return;
  const Signature* const trained = context_.options.trained;
  const TableColumn& column = *table.find(columns_[0]);
  if (trained != nullptr && trained->is_images() && trained->task == task_) {
    class_names_ = trained->classes;
  } else if (!is_class() && !has_label_lists()) {
    class_names_ = columns_;
  } else if (!declared_.empty()) {
    class_names_ = declared_;
  } else if (is_class()) {
    class_names_ = sorted_values(column.values);
  } else {
    std::set<std::string> labels;
    for (const std::string& value : column.values) {
      for (std::string& label : labels_in(value)) labels.insert(std::move(label));
    }
    class_names_ = sorted_values({labels.begin(), labels.end()});
  }
  for (size_t i = 0; i < class_names_.size(); ++i) {
    labels_[class_names_[i]] = static_cast<int32_t>(i);
  }
}

int64_t ImageTargets::size() const {
  if (is_class()) return 0;
  return static_cast<int64_t>(has_label_lists() ? class_names_.size() : columns_.size());
}

bool ImageTargets::all_missing(const Table& table) const {
  for (const std::string& name : columns_) {
    const TableColumn& column = *table.find(name);
    for (size_t row = 0; row < table.lines.size(); ++row) {
      if (!is_missing(column, row)) return false;
    }
  }
  return true;
}

std::string ImageTargets::read(const Table& table, size_t row, int32_t& label,
                               std::vector<float>& numbers) const {
  numbers.assign(static_cast<size_t>(size()), 0);
  const TableColumn& first = *table.find(columns_[0]);
  if (has_label_lists()) return read_labels(first, row, numbers);
  for (const std::string& name : columns_) {
    if (!is_missing(*table.find(name), row)) continue;
    return fmt::format("column '{}' has no value", printable(name));
  }
  if (is_class()) {
    const std::string& name = first.values[static_cast<size_t>(first.codes[row])];
    const auto known = labels_.find(name);
    if (known == labels_.end()) return unknown_class(name);
    label = known->second;
    return {};
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    const double value = table.find(columns_[i])->numbers[row];
    if (task_ == "multi-label" && value != 0 && value != 1) {
      return fmt::format("label '{}' is {}, which is neither 0 nor 1", printable(columns_[i]),
                         value);
    }
    if (task_ == "count-regression" && value < 0) {
      return fmt::format("target '{}' is not a count (an integer of at least 0)", value);
    }
    numbers[i] = static_cast<float>(value);
  }
  return {};
}

std::string ImageTargets::read_labels(const TableColumn& column, size_t row,
                                      std::vector<float>& numbers) const {
  if (is_missing(column, row)) return {};
  for (const std::string& name : labels_in(column.values[static_cast<size_t>(column.codes[row])])) {
    const auto known = labels_.find(name);
    if (known == labels_.end()) return unknown_class(name);
    numbers[static_cast<size_t>(known->second)] = 1;
  }
  return {};
}

}  // namespace gallop::data
