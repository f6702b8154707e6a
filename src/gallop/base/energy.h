#pragma once

#include <optional>
#include <vector>

#include "gallop/base/file.h"

namespace gallop {

/// Measures the energy of the machine's processors by Linux's RAPL counters of Intel and AMD CPUs
/// (/sys/class/powercap), which include all processes.
class EnergyCounter {
 public:
  explicit EnergyCounter(const fs::path& root = "/sys/class/powercap");

  /// Whether there is a readable counter.
  bool is_there() const { return !packages_.empty(); }
  /// Joules since the last call or the construction; 0 without a counter. Counters wrap around
  /// after some minutes at least; call this more often.
  double joules();

 private:
  struct Package {
    fs::path file;
    double full = 0;  ///< Joules at which it wraps around.
    double last = 0;
  };
  std::vector<Package> packages_;
};

}  // namespace gallop
