#pragma once

#include <string>
#include <vector>

#include "gallop/data/data_module.h"
#include "gallop/data/table.h"
#include "gallop/data/table/table_reader.h"

namespace gallop::data {

/// Which columns of a table are read, and as what.
struct TableSchema {
  std::string task;
  std::vector<std::string> targets, features;
  std::vector<std::string> names;    ///< Of all columns that are read.
  std::vector<ColumnType> types;     ///< Of each of `names`.
  std::vector<std::string> classes;  ///< Of the target, if the file declares them.
  std::vector<std::string> notes;
};

/// Chooses the columns by the values in the training file; for a trained model, those that it
/// reads. Throws UsageError and DataError.
TableSchema find_schema(TableReader& file, const TableConfig& config, const DataContext& context,
                        const Signature* trained);

}  // namespace gallop::data
