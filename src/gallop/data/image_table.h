#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/data/data_module.h"

namespace gallop::data {

/// Images that a table lists with their targets: a file, or a folder with train, val and test, each
/// CSV, TSV or JSON Lines; or Hugging Face's image folders, with metadata.csv or metadata.jsonl.
struct ImageTableConfig {
  std::string image;                  ///< Column of the images; empty: one with a usual name.
  std::string target;                 ///< Column to predict; empty: `targets`, or label or labels.
  std::vector<std::string> targets;   ///< Several columns to predict.
  std::string label_separator = "|";  ///< Between the labels of an image in one column.
  std::vector<std::string> missing;   ///< Further texts that stand for missing values.
  std::string root;                   ///< Folder of the images; empty: that of the table.
  bool standardize_targets = true;
};

void visit(config::Visitor& visitor, ImageTableConfig& config);

/// Fields as those of ImageSamples. The task follows from the targets as that of a table does, and
/// is multi-label for a column of lists. Throws DataError with file, line and column for values
/// that do not fit, which `data.on_error: skip` leaves out.
std::unique_ptr<DataModule> open_image_table(const ImageTableConfig& config,
                                             const DataContext& context);

}  // namespace gallop::data
