#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/data/data_module.h"

namespace gallop::data {

/// A table of numbers as CSV: a file, or a folder with train.csv and optionally val.csv and
/// test.csv. The first line names the columns.
struct TableConfig {
  std::vector<std::string> targets;  ///< Columns to predict; empty: the last one.
  std::vector<std::string> ignore;   ///< Columns to ignore.
  std::string separator = ",";
};

void visit(config::Visitor& visitor, TableConfig& config);

/// Fields "features" [columns] fp32, normalized with the mean and standard deviation of the
/// training split, and "target": fp32 [targets] for regression, an int64 label for classification,
/// fp32 [targets] of 0 and 1 for multi-label. With `data.task: auto`, a single target with any
/// non-numeric value is a class, several targets whose values are all 0 or 1 are labels, and
/// everything else is regression. Throws DataError with file and line for invalid numbers;
/// `data.on_error: skip` leaves such rows out.
std::unique_ptr<DataModule> open_table(const TableConfig& config, const DataContext& context);

/// The rows of another file for a model that was trained on such a table. The file must have the
/// signature's columns, in any order, and needs no targets. The separator is comma, semicolon or
/// tab, whichever is most frequent in the first line.
std::unique_ptr<Samples> table_rows(const std::string& file, const Signature& trained);

}  // namespace gallop::data
