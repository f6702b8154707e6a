#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace gallop::schedule {

/// The measurement of a batch size.
struct BatchPoint {
  int64_t batch = 0;
  double samples_per_second = 0;
  int64_t bytes = 0;  ///< Peak memory.
};

/// Measures a batch size; nothing if it does not fit into memory.
using TryBatch = std::function<std::optional<BatchPoint>(int64_t batch)>;

struct BatchLimits {
  int64_t first = 8;         ///< First batch size.
  int64_t most = 0;          ///< Number of available samples.
  int64_t bytes = 0;         ///< Available memory, for estimating what fits.
  double step_seconds = 20;  ///< Maximum duration of a step.
  bool largest = true;       ///< Also find the largest batch that fits.
};

struct BatchSearch {
  std::vector<BatchPoint> points;    ///< All that fit, in ascending order.
  std::optional<int64_t> too_large;  ///< The smallest that did not fit.
  bool cut_short = false;            ///< Stopped because steps would take too long.

  int64_t largest() const { return points.back().batch; }
};

/// Doubles the batch size as long as throughput grows by 3% in two doublings. Then, if requested,
/// finds the largest one that fits to 1/8: by extrapolating the memory of the last two, and by
/// bisection. One that is 20% slower than a smaller one is measured again, as other processes may
/// have interfered. No points if not even one sample fits.
BatchSearch search_batches(const TryBatch& try_batch, const BatchLimits& limits);

/// The smallest batch size with 95% of the maximum throughput.
int64_t fastest_from(const std::vector<BatchPoint>& points);

/// The suggested batch size: the smallest fast one, but not above the critical batch size if that
/// is known, then rounded down to a power of two.
int64_t suggested_batch(const BatchSearch& search, std::optional<double> critical);

}  // namespace gallop::schedule
