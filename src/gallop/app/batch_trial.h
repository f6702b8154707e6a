#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/app/command.h"
#include "gallop/base/stop.h"
#include "gallop/train/batch_probe.h"

namespace gallop::app {

/// What one process, a copy of this program that `find-batch --probe` starts, or several together,
/// are to find out for another one.
struct BatchTrial {
  /// "format": precision and memory order, where the recipe leaves them open. "speed": samples per
  /// second and memory of its batch. "noise": the gradient noise scale, from parts of its batch.
  std::string probe;
  std::string recipe;
  std::string runs = "runs";
  std::vector<Override> overrides;
  int64_t limit_bytes = 0;     ///< That each process may take.
  train::NoiseConfig noise{};  ///< But for what the recipe tells.
};

/// The words that start it, after the program's name.
std::vector<std::string> args_of(const BatchTrial& trial);

/// Tells the result, or that there was no memory, to the one that started this process.
ExitCode run_batch_trial(const Registries& registries, const BatchTrial& trial,
                         const StopRequest& stop);

}  // namespace gallop::app
