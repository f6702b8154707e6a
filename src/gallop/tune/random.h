#pragma once

#include <cstddef>
#include <cstdint>

#include "gallop/base/philox.h"
#include "gallop/tune/normal.h"

namespace gallop::tune {

/// The random numbers of one trial; a function of the study's seed and the trial's number.
class Random {
 public:
  /// `item` selects one of several independent streams of a trial.
  Random(uint64_t seed, int64_t trial, uint32_t item = 0)
      : philox_(seed, Purpose::kTrial, item, static_cast<uint64_t>(trial)) {}

  /// Uniform in [0, 1), with 53 random bits.
  double uniform() { return static_cast<double>(philox_.next_u64() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// A sample of the standard normal distribution.
  double normal() {
    const double share = uniform();
    return normal_quantile(share > 0 ? share : 0x1p-54);
  }
  /// A uniform integer in [0, bound).
  size_t below(size_t bound) { return philox_.below(bound); }

 private:
  Philox philox_;
};

}  // namespace gallop::tune
