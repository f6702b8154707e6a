#pragma once

#include "gallop/base/named_files.h"
#include "gallop/data/data_module.h"

namespace gallop::data {

/// All files of a data set, for the run's identity.
DataPaths paths_of(const DataModule& data);

}  // namespace gallop::data
