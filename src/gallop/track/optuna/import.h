#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track::optuna {

/// A trial of a study in an SQLite file of Optuna (its RDBStorage).
struct StoredTrial {
  int64_t id = 0;
  std::string name;  ///< "STUDY-0007", with '-' for what a run's name may not have.
};

/// The trials of a study that have begun, or of all studies of the file where `study` is empty, in
/// their order. Throws UsageError where there is no such study, and DataError where the file is not
/// one of Optuna, or of another version of its tables than 12, which Optuna 3.0 to 5.0 write.
std::vector<StoredTrial> find_trials(const fs::path& file, const std::string& study);

/// Makes RUNS/NAME of it: what it reported and came to as points of the study's metrics, `value`
/// where they have no names; its parameters as options; the study as tag `sweep`, its number and
/// state as tags `trial` and `trial_state`, and its user attributes as further ones. Returns the
/// number of points. Throws UsageError where there is such a run, and as find_trials() does.
int64_t import_trial(const fs::path& file, const StoredTrial& from, const fs::path& runs,
                     const std::string& name);

}  // namespace gallop::track::optuna
