#pragma once

#include "gallop/data/table.h"
#include "gallop/data/table/row_reader.h"

namespace gallop::data {

/// The options for the text of a table. Throws UsageError for an invalid separator.
TableOptions table_options(const TableConfig& config);
/// Those for other files than the training file of a trained model. Their separator is detected
/// unless the training file has an unusual one.
TableOptions table_options(const Signature& trained);

}  // namespace gallop::data
