#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/database/sqlite.h"
#include "gallop/track/foreign_run.h"

namespace gallop::track::optuna {

/// A trial of a study in an SQLite file of Optuna (its RDBStorage).
struct StoredTrial {
  int64_t id = 0;
  std::string name;  ///< "STUDY-0007", with '-' for what a run's name may not have.
};

/// The studies of such a file.
class Storage {
 public:
  /// Throws DataError where the file is not one of Optuna, or of another version of its tables than
  /// 12, which Optuna 3.0 to 5.0 write.
  explicit Storage(const fs::path& file);

  /// The trials of a study that have begun, or of all studies where `study` is empty, in their
  /// order. Throws UsageError where there are none, or no such study.
  std::vector<StoredTrial> trials(const std::string& study);

  /// Makes RUNS/NAME of a trial: what it reported and came to as points of the study's metrics,
  /// `value` where they have no names; its parameters as options; the study as tag `sweep`, its
  /// number and state as tags `trial` and `trial_state`, and its user attributes as further ones.
  /// Throws UsageError where there is such a run, and DataError for
  /// what Optuna does not write.
  Imported import_trial(const StoredTrial& from, const fs::path& runs, const std::string& name);

 private:
  fs::path file_;
  database::SqliteDatabase database_;
};

}  // namespace gallop::track::optuna
