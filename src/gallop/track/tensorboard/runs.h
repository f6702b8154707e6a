#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track::tensorboard {

/// Writes a run for TensorBoard, as FOLDER/RUN/events.out.tfevents...; what an earlier export wrote
/// there is replaced. `train.loss` is its tag "train/loss", `accuracy` (of an evaluation)
/// "evaluation/accuracy", and the recipe's options are in its table of hparams. Returns the number
/// of points. Throws DataError and DeviceError.
int64_t export_run(const fs::path& run, const fs::path& folder);

/// A folder with files of events in it, which is one run.
struct EventFolder {
  fs::path folder;
  std::string name;  ///< Its path below the folder that was looked in, with '-' for '/'.
};

/// All below a folder, in the order of their names. Throws UsageError where there is none.
std::vector<EventFolder> find_runs(const fs::path& folder);

/// What was read of one.
struct Imported {
  int64_t points = 0;
  int64_t left_out = 0;  ///< Values that are no numbers: images, histograms, graphs.
};

/// Makes RUNS/NAME of it, with its hparams as options. Throws DataError where a file is damaged (no
/// run is made then), UsageError where there is such a run.
Imported import_run(const EventFolder& from, const fs::path& runs, const std::string& name);

}  // namespace gallop::track::tensorboard
