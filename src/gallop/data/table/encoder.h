#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/data/normalize.h"
#include "gallop/data/table/table.h"
#include "gallop/data/table_feature.h"

namespace gallop::data {

/// How the columns of a table become the inputs of a model.
struct EncoderOptions {
  std::string transform = "standard";  ///< Of numbers: standard, quantile or none.
  bool is_one_hot = true;              ///< Of categories; otherwise they are indices.
  int64_t bins = 32;                   ///< Of each number, at most.
  /// Every column is an input: constant ones, and those that only name or number the rows.
  bool keeps_all = false;
  std::vector<std::string> kept{};  ///< Columns that are inputs though they seem to name the rows.
  /// The normalization of each feature that is no category, in place of statistics of the rows; may
  /// be empty.
  Normalization given{};
};

/// The inputs that are computed from a table, with statistics of its training rows.
struct TableEncoder {
  std::vector<TableFeature> features;  ///< Those that are no categories first.
  Normalization normalization;         ///< Of each feature that is no category.
  std::vector<std::string> notes;      ///< Columns that were left out.

  /// The elements of "features" and of "categories".
  int64_t width() const;
  int64_t categories() const;
};

/// Inputs from the columns of these kinds, except ignored ones. Statistics are of `rows` alone.
/// Throws DataError if no column is left.
TableEncoder fit_encoder(const Table& table, const std::vector<size_t>& columns,
                         const std::vector<int64_t>& rows, const EncoderOptions& options);

/// The inputs of all rows of a table.
struct EncodedRows {
  std::vector<float> numbers;       ///< [rows, width]
  std::vector<int64_t> categories;  ///< [rows, categories]
};
/// The table must have the columns of the features, read with column_type().
EncodedRows encode(const Table& table, const std::vector<TableFeature>& features,
                   const Normalization& normalization);

/// The type with which the column of a feature is read.
ColumnType column_type(const TableFeature& feature);

/// Distinct values in order: by number if they are numbers, otherwise by text.
std::vector<std::string> sorted_values(std::vector<std::string> values);

}  // namespace gallop::data
