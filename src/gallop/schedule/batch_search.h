#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace gallop::schedule {

/// What a batch was found to take.
struct BatchPoint {
  int64_t batch = 0;
  double samples_per_second = 0;
  int64_t bytes = 0;  ///< At most in use.
};

/// Tries a batch; nothing where it does not fit.
using TryBatch = std::function<std::optional<BatchPoint>(int64_t batch)>;

struct BatchLimits {
  int64_t first = 8;         ///< Where doubling begins.
  int64_t most = 0;          ///< Samples that there are.
  int64_t bytes = 0;         ///< Of memory, for a guess at what fits.
  double step_seconds = 20;  ///< Longer steps are not tried.
  bool largest = true;       ///< Look for the largest that fits, too.
};

struct BatchSearch {
  std::vector<BatchPoint> points;    ///< All that fit, the smallest first.
  std::optional<int64_t> too_large;  ///< The smallest that was found not to fit.
  bool cut_short = false;            ///< Larger ones would take too long a step.

  int64_t largest() const { return points.back().batch; }
};

/// Doubles the batch as long as samples per second grow by 3 % in two doublings. Then, where that
/// is asked for, finds the largest that fits to an eighth: by a guess from the memory of the last
/// two, and by halving the interval. One that is slower by a fifth than a smaller one is tried
/// again, as something else may have run meanwhile. No points where not one sample fits.
BatchSearch search_batches(const TryBatch& try_batch, const BatchLimits& limits);

/// The smallest batch with 95 % of the samples per second of the fastest.
int64_t fastest_from(const std::vector<BatchPoint>& points);

/// What to train with: the smallest batch that is fast, but none beyond the critical one, where
/// that is known, rounded down to a power of two then.
int64_t suggested_batch(const BatchSearch& search, std::optional<double> critical);

}  // namespace gallop::schedule
