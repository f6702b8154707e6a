#pragma once

#include "gallop/data/data_module.h"
#include "gallop/data/quality/data_quality.h"

namespace gallop::data {

/// Looks for duplicates of whole samples within and across splits, for equal inputs with different
/// targets, and for classes out of balance, in data of any kind.
DataQuality check_samples(const DataModule& module);

}  // namespace gallop::data
