#pragma once

#include "gallop/data/table.h"
#include "gallop/data/table/csv_table.h"

namespace gallop::data {

/// The options for the text of a table. Throws UsageError for an invalid separator.
CsvOptions csv_options(const TableConfig& config);

}  // namespace gallop::data
