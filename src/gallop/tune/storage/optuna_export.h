#pragma once

#include "gallop/base/file.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// Writes a study into a new SQLite file with the tables of Optuna 5 (schema 12), so that Optuna
/// and its dashboard open it. Choices that Optuna has not, as lists, are texts there, and scales
/// that it has not are linear. Throws UsageError where the file is there already, DeviceError where
/// it cannot be written.
void export_to_optuna(const Study& study, const fs::path& path);

}  // namespace gallop::tune
