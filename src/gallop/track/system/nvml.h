#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// What a GPU does at a moment. What it does not tell is -1.
struct GpuReading {
  double use = -1;           ///< Share of the time in which a kernel ran, 0 to 1.
  double memory_bytes = -1;  ///< In use.
  double watts = -1;
  double celsius = -1;
  double joules = -1;  ///< Since its driver was loaded.
};

/// Reads NVIDIA's GPUs by its management library, which is loaded at run time. See
/// https://docs.nvidia.com/deploy/nvml-api.
class Nvml {
 public:
  explicit Nvml(const fs::path& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// One for each GPU; none where there is no driver.
  std::vector<GpuReading> read() const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;  ///< Null without the library.
  std::vector<void*> gpus_;
};

}  // namespace gallop::track
