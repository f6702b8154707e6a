#pragma once

#include "gallop/data/table.h"
#include "gallop/data/table/row_reader.h"

namespace gallop::data {

/// The options for the text of a table. Throws UsageError for an invalid separator.
TableOptions table_options(const TableConfig& config);

}  // namespace gallop::data
