#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/database/sqlite.h"
#include "gallop/track/foreign_run.h"

namespace gallop::track::optuna {

/// A trial in an SQLite file of Optuna (RDBStorage).
struct StoredTrial {
  int64_t id = 0;
  std::string name;  ///< "STUDY-0007", with invalid characters replaced by '-'.
};

/// An SQLite file of Optuna.
class Storage {
 public:
  /// Throws DataError if the file is not an Optuna storage with schema version 12, which Optuna 3.0
  /// to 5.0 write.
  explicit Storage(const fs::path& file);

  /// The started trials of a study, or of all studies if `study` is empty, in order. Throws
  /// UsageError if there are none, or no such study.
  std::vector<StoredTrial> trials(const std::string& study);

  /// Imports a trial as RUNS/NAME: its reports and results as points of the study's metrics
  /// (`value` if unnamed); its parameters as options; the study as tag `sweep`, its number and
  /// state as tags `trial` and `trial_state`, and its user attributes as further tags. Throws
  /// UsageError if the run exists, and DataError for invalid content.
  Imported import_trial(const StoredTrial& from, const fs::path& runs, const std::string& name);

 private:
  fs::path file_;
  database::SqliteDatabase database_;
};

}  // namespace gallop::track::optuna
