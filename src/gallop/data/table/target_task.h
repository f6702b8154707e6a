#pragma once

#include <string>
#include <vector>

#include "gallop/data/table/table_reader.h"

namespace gallop::data {

/// The task that follows from the values of the targets: classification for a single one of text,
/// of truth values, or of whole numbers that count from 0 or 1; multi-label for several of 0 and 1;
/// otherwise regression. With `numbers_only`, numbers are never classes.
std::string natural_task(const std::vector<const ColumnScan*>& targets, bool numbers_only);

}  // namespace gallop::data
