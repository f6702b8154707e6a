#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/data/data_module.h"

namespace gallop::data {

/// A table as CSV, TSV or JSON Lines, plain or gzip, or as Parquet: a file, or a folder with train
/// and optionally val and test, or with their shards. The types of the columns are found over the
/// whole training file.
struct TableConfig {
  std::string target;                ///< Column to predict; empty: `targets`, or the last column.
  std::vector<std::string> targets;  ///< Several columns to predict.
  std::vector<std::string> ignore;   ///< Columns that are not read.
  std::vector<std::string> numbers, categories, dates;  ///< Columns of other types than found.
  std::vector<std::string> missing;  ///< Further texts that stand for missing values.
  std::string weight;                ///< Column of the rows' weights in the loss; empty: none.
  std::string separator = "auto";
  std::string decimal = "auto";
  std::string header = "auto";
  bool day_first = false;
  std::string transform = "standard";
  std::string encoding = "auto";  ///< one-hot or index; auto: what the model reads.
  bool standardize_targets = true;
  /// Not an option: every column must be numbers without missing values, as of CsvConfig.
  bool numbers_only = false;
};

void visit(config::Visitor& visitor, TableConfig& config);

/// A table of numbers alone, whose targets keep their units.
struct CsvConfig {
  std::vector<std::string> targets;  ///< Columns to predict; empty: the last one.
  std::vector<std::string> ignore;   ///< Columns to ignore.
  std::string separator = ",";
};

void visit(config::Visitor& visitor, CsvConfig& config);

/// Fields "features" fp32 with the encoded columns, "categories" int64 if categories are encoded as
/// indices, "weight" if there is such a column, and "target": fp32 [targets] for regression, an
/// int64 label for classification, fp32 [targets] of 0 and 1 for multi-label. Statistics are of the
/// training split. With `data.task: auto`, a single target of text, of truth values or of
/// consecutive whole numbers from 0 or 1 is a class, several targets whose values are all 0 or 1
/// are labels, and everything else is regression. Throws DataError with file, line and column for
/// values that do not fit; `data.on_error: skip` leaves such rows out.
std::unique_ptr<DataModule> open_table(const TableConfig& config, const DataContext& context);

/// As open_table(), for a CSV file of numbers; a single target with any other value is a class.
std::unique_ptr<DataModule> open_csv(const CsvConfig& config, const DataContext& context);

/// The rows of another file for a model that was trained on such a table. The file must have the
/// signature's columns, in any order, and needs no targets.
std::unique_ptr<Samples> table_rows(const std::string& file, const Signature& trained);

/// The endings of the names of tables.
std::vector<std::string> table_endings();
/// Whether a file is a table by the ending of its name.
bool is_table_file(const std::string& file);
/// About how many rows the shards of a table have: without parsing, by their lines.
int64_t count_rows(const std::vector<std::string>& files);

}  // namespace gallop::data
