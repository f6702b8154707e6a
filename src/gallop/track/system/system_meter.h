#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/energy.h"
#include "gallop/base/file.h"
#include "gallop/track/system/nvml.h"

namespace gallop::track {

/// The system metrics of an interval.
struct SystemReading {
  /// "cpu" (busy cores of this process), "machine_cpu" (busy fraction of all cores), "memory_bytes"
  /// (of this process), "machine_memory" (used fraction), "disk_read" and "disk_written" (bytes per
  /// second, of this process), "joules" (in the interval), and for GPUs "gpu0_use",
  /// "gpu0_memory_bytes", "gpu0_watts", "gpu0_celsius". Unavailable metrics are omitted.
  std::map<std::string, double> values;
  /// The source of "joules": "rapl", "estimated", and with GPUs "rapl+nvml", "estimated+nvml".
  std::string energy_method;
};

/// The system files to read; replaceable for tests.
struct SystemPlaces {
  fs::path proc = "/proc";
  fs::path powercap = "/sys/class/powercap";
  fs::path nvml = "libnvidia-ml.so.1";
};

/// Measures system metrics. The energy of processors is read from RAPL, for the whole machine; if
/// that is not readable, it is estimated for this process: 12 W per busy core and 0.3725 W per GB
/// of memory (Lannelongue, Grealey, Inouye 2021, "Green Algorithms", Adv. Sci. 8, 2100707, with its
/// defaults for unknown processors).
class SystemMeter {
 public:
  /// `processes`: number of training processes on this machine, which are assumed to work equally.
  explicit SystemMeter(int processes, const SystemPlaces& places = {});

  /// The metrics since the last call or the construction.
  SystemReading read();

 private:
  struct Counters {
    double seconds = 0;                        ///< Monotonic clock.
    double process_cpu = 0;                    ///< CPU seconds.
    double busy = 0, all = 0;                  ///< Of all cores, in ticks.
    double disk_read = -1, disk_written = -1;  ///< Bytes; -1 if unknown.
    std::vector<GpuReading> gpus;
  };
  Counters count() const;
  double gpu_joules(const Counters& now, double seconds) const;

  int processes_;
  fs::path proc_;
  EnergyCounter energy_;
  Nvml nvml_;
  Counters last_;
};

}  // namespace gallop::track
