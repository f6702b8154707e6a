#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/app/command.h"
#include "gallop/base/stop.h"
#include "gallop/train/batch_probe.h"

namespace gallop::app {

/// A measurement in a child process (or a group of them) started as `find-batch --probe`.
struct BatchTrial {
  /// "format": precision and memory format, if the recipe leaves them open. "speed": throughput and
  /// memory of its batch size. "noise": the gradient noise scale, from slices of its batch.
  std::string probe;
  std::string recipe;
  std::string runs = "runs";
  std::vector<Override> overrides;
  int64_t limit_bytes = 0;     ///< Per process.
  train::NoiseConfig noise{};  ///< Except for what the recipe determines.
};

/// The arguments that start it, after the program's name.
std::vector<std::string> args_of(const BatchTrial& trial);

/// Reports the result, or that memory ran out, to the parent process.
ExitCode run_batch_trial(const Registries& registries, const BatchTrial& trial,
                         const StopRequest& stop);

}  // namespace gallop::app
