#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/foreign_run.h"

namespace gallop::track::tensorboard {

/// Exports a run for TensorBoard as FOLDER/RUN/events.out.tfevents..., replacing an earlier export.
/// `train.loss` becomes the tag "train/loss", `accuracy` (of an evaluation) "evaluation/accuracy",
/// and the recipe's options are hparams. Returns the number of points. Throws DataError and
/// DeviceError.
int64_t export_run(const fs::path& run, const fs::path& folder);

/// A folder with event files, which is one run.
struct EventFolder {
  fs::path folder;
  std::string name;  ///< Made unique by run_names(), from its relative path.
};

/// Finds all such folders recursively, including hidden ones, sorted by path. Read errors are
/// appended to `unreadable`, one line each. Throws UsageError if there are none, or the folder
/// itself cannot be read.
std::vector<EventFolder> find_runs(const fs::path& folder, std::vector<std::string>& unreadable);

/// Imports a folder as RUNS/NAME, with its hparams as options. Points logged without a step are
/// numbered by time; damaged parts are skipped and counted in the notes. Throws DataError if a file
/// has no readable event or none has a value (no run is created then), UsageError if the run
/// exists.
Imported import_run(const EventFolder& from, const fs::path& runs, const std::string& name);

}  // namespace gallop::track::tensorboard
