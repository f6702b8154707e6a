#pragma once

#include <optional>
#include <vector>

#include "gallop/base/file.h"

namespace gallop {

/// Counts the energy that the processors of this machine take, by the counters that Linux shows of
/// Intel's and AMD's (RAPL, /sys/class/powercap). Whatever runs on the machine counts.
class EnergyCounter {
 public:
  explicit EnergyCounter(const fs::path& root = "/sys/class/powercap");

  /// Whether there is a counter that this process may read.
  bool is_there() const { return !packages_.empty(); }
  /// Since the last call, or the construction; 0 without a counter. A counter begins again once it
  /// is full, after some minutes at least: call this more often than that.
  double joules();

 private:
  struct Package {
    fs::path file;
    double full = 0;  ///< Joules at which it begins again.
    double last = 0;
  };
  std::vector<Package> packages_;
};

}  // namespace gallop
