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
  std::vector<std::string> ignore;   ///< Columns that are not read.
  std::string separator = ",";
};

void visit(config::Visitor& visitor, TableConfig& config);

/// Fields "features" [columns] fp32, normalized by the training part's mean and deviation, and
/// "target": for regression fp32 [targets], for classification an int64 label, for multi-label fp32
/// [targets] of 0 and 1. With `data.task: auto` a single target is a class where any value is no
/// number, several are labels where all values are 0 or 1, and everything else is regression.
/// Throws DataError with file and line for what is no number; `data.on_error: skip` leaves such
/// rows out.
std::unique_ptr<DataModule> open_table(const TableConfig& config, const DataContext& context);

/// The rows of another file as a model takes them that was trained on such a table: it needs the
/// signature's columns, in any order; of its targets it needs none. What separates fields is the
/// one of comma, semicolon and tab that the first line has most of.
std::unique_ptr<Samples> table_rows(const std::string& file, const Signature& trained);

}  // namespace gallop::data
