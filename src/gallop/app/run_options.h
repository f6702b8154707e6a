#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gallop/base/file.h"
#include "gallop/track/mlflow/push.h"
#include "gallop/train/train_config.h"

namespace gallop::app {

/// The folder and name of a run, and how it starts and ends.
struct RunOptions {
  std::string runs = "runs";
  std::string name;              ///< Empty: the recipe's name and a number.
  bool resume_if_there = false;  ///< Continue a run of this name instead of refusing it.
  /// Name or folder of a run whose newest checkpoint this one starts from; empty: none.
  std::string from;
  train::Interval until{};  ///< Where to stop before the end; kNever: nowhere.
  /// Start with the checkpoint of a sibling run with the same first steps, and keep some for
  /// siblings: at this many evaluations, and where the schedule begins to change. Nothing: neither.
  std::optional<int64_t> share{};
  bool allow_changed_data = false;  ///< Resume even if files of the data have changed.
  /// Whether copies of this program can try batch sizes for `data.batch_size: auto`: they are
  /// started as `gallop find-batch`.
  bool can_probe = true;
  std::optional<track::mlflow::Target> mlflow{};  ///< A server to push the run to while it trains.
};

/// Throws UsageError, with the remedy, if the folder `run` contains a run.
void refuse_existing_run(const fs::path& run);

}  // namespace gallop::app
