#pragma once

#include <arrow/type_fwd.h>

#include "gallop/data/parquet_file.h"

// The values of Arrow's types as text.
namespace gallop::data {

bool is_list_type(arrow::Type::type type);
/// Whether values of a type that is no list can be text.
bool has_text(const arrow::DataType& type);
/// Appends all values of an array as ParquetFile::read() says.
void append_texts(const arrow::Array& array, ParquetValues& values);

}  // namespace gallop::data
