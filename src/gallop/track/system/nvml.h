#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// The state of a GPU. Unknown values are -1.
struct GpuReading {
  double use = -1;           ///< Fraction of the time in which a kernel ran, 0 to 1.
  double memory_bytes = -1;  ///< In use.
  double watts = -1;
  double celsius = -1;
  double joules = -1;  ///< Since the driver was loaded.
};

/// Reads NVIDIA GPUs through NVML, which is loaded at run time. See
/// https://docs.nvidia.com/deploy/nvml-api.
class Nvml {
 public:
  explicit Nvml(const fs::path& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// One reading per GPU; empty without a driver.
  std::vector<GpuReading> read() const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;  ///< Null without the library.
  std::vector<void*> gpus_;
};

}  // namespace gallop::track
