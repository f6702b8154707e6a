#pragma once

#include "gallop/base/file.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// Exports a study into a new SQLite file with the schema of Optuna 5 (version 12), which Optuna
/// and its dashboard can open. Choices that Optuna does not support, such as lists, become strings,
/// and unsupported scales become linear. Throws UsageError if the file exists, DeviceError if it
/// cannot be written.
void export_to_optuna(const Study& study, const fs::path& path);

}  // namespace gallop::tune
