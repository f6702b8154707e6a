#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/foreign_run.h"

namespace gallop::track::tensorboard {

/// Writes a run for TensorBoard, as FOLDER/RUN/events.out.tfevents...; what an earlier export wrote
/// there is replaced. `train.loss` is its tag "train/loss", `accuracy` (of an evaluation)
/// "evaluation/accuracy", and the recipe's options are in its table of hparams. Returns the number
/// of points. Throws DataError and DeviceError.
int64_t export_run(const fs::path& run, const fs::path& folder);

/// A folder with files of events in it, which is one run.
struct EventFolder {
  fs::path folder;
  std::string name;  ///< As run_names() makes it of its path below the folder looked in.
};

/// All below a folder, hidden ones too, in the order of their paths. What cannot be read of it is
/// told to `unreadable`, a line each. Throws UsageError where there is none, or the folder itself
/// cannot be read.
std::vector<EventFolder> find_runs(const fs::path& folder, std::vector<std::string>& unreadable);

/// Makes RUNS/NAME of it, with its hparams as options. Points that were logged without a step are
/// numbered by their time; what is damaged is left out, and counted in its notes. Throws
/// DataError where a file has no event that can be read (no run is made then), UsageError where
/// there is such a run.
Imported import_run(const EventFolder& from, const fs::path& runs, const std::string& name);

}  // namespace gallop::track::tensorboard
