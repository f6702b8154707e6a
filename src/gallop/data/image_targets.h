#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gallop/data/data_module.h"
#include "gallop/data/image_table.h"
#include "gallop/data/table/table_reader.h"

namespace gallop::data {

/// The targets of images in a table: the columns, the task that follows from them, and the values
/// of each row.
class ImageTargets {
 public:
  ImageTargets(const ImageTableConfig& config, const DataContext& context)
      : config_(config), context_(context) {}

  /// Chooses columns and task by the training table, none of whose targets is `image`.
  void choose(TableReader& file, const std::string& image, std::vector<std::string>& notes);
  /// Sets the classes, by the rows of the training table.
  void set_classes(const Table& table);

  const std::vector<std::string>& columns() const { return columns_; }
  const std::string& task() const { return task_; }
  const std::vector<std::string>& class_names() const { return class_names_; }
  bool predicts_numbers() const { return task_ == "regression" || task_ == "count-regression"; }
  /// ImageSet::target_size().
  int64_t size() const;
  /// The type with which each of the columns is read.
  ColumnType type(bool is_required) const;

  /// Whether all rows lack all targets, as those of a test split without labels.
  bool all_missing(const Table& table) const;
  /// Reads the targets of a row. Returns what is wrong with them; empty if nothing is.
  std::string read(const Table& table, size_t row, int32_t& label,
                   std::vector<float>& numbers) const;

 private:
  void choose_task_of(TableReader& file, std::vector<std::string>& notes);
  bool is_class() const { return task_ == "classification"; }
  // Whether the labels of an image are in one column.
  bool has_label_lists() const { return task_ == "multi-label" && columns_.size() == 1; }
  std::vector<std::string> labels_in(const std::string& text) const;
  std::string read_labels(const TableColumn& column, size_t row, std::vector<float>& numbers) const;

  const ImageTableConfig& config_;
  const DataContext& context_;
  std::string task_;
  std::vector<std::string> columns_, class_names_, declared_;
  std::map<std::string, int32_t> labels_;
};

}  // namespace gallop::data
