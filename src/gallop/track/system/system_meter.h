#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/energy.h"
#include "gallop/base/file.h"
#include "gallop/track/system/nvml.h"

namespace gallop::track {

/// What the machine did between two looks at it.
struct SystemReading {
  /// "cpu" (cores that this process kept busy), "machine_cpu" (share of all cores that was busy),
  /// "memory_bytes" (of this process), "machine_memory" (share of the memory in use),
  /// "disk_read" and "disk_written" (bytes a second, of this process), "joules" (since the last
  /// look), and of GPUs "gpu0_use", "gpu0_memory_bytes", "gpu0_watts", "gpu0_celsius". What cannot
  /// be told is left out.
  std::map<std::string, double> values;
  /// How "joules" was found: "rapl", "estimated", and with GPUs "rapl+nvml", "estimated+nvml".
  std::string energy_method;
};

/// Where it looks; others for tests.
struct SystemPlaces {
  fs::path proc = "/proc";
  fs::path powercap = "/sys/class/powercap";
  fs::path nvml = "libnvidia-ml.so.1";
};

/// Looks at the machine. Energy of processors is what RAPL counts, which is all that runs on the
/// machine; where that cannot be read it is estimated of this process: 12 W for each core that it
/// keeps busy and 0.3725 W for each GB that it holds (Lannelongue, Grealey, Inouye 2021, "Green
/// Algorithms", Adv. Sci. 8, 2100707, and its defaults for processors that it does not know).
class SystemMeter {
 public:
  /// `processes`: that train on this machine together with this one, and are taken to do as much.
  explicit SystemMeter(int processes, const SystemPlaces& places = {});

  /// Since the last call or the construction.
  SystemReading read();

 private:
  struct Counters {
    double seconds = 0;                        ///< Of a clock.
    double process_cpu = 0;                    ///< Seconds.
    double busy = 0, all = 0;                  ///< Of all cores, in ticks.
    double disk_read = -1, disk_written = -1;  ///< Bytes; -1 where they are not told.
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
