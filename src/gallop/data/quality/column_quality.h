#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/data/quality/data_quality.h"
#include "gallop/data/table/table.h"

namespace gallop::data {

/// The inputs of check_columns() for a column.
struct ColumnFacts {
  std::string name;
  int64_t rows = 0, missing = 0;
  bool is_constant = false;  ///< All values that are not missing are equal.
};

ColumnFacts facts_of(const TableColumn& column, const std::vector<int64_t>& rows);

/// Adds findings for columns without values, with one value, and with missing values.
void check_columns(const std::vector<ColumnFacts>& columns, DataQuality& quality);

}  // namespace gallop::data
