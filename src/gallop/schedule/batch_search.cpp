#include "gallop/schedule/batch_search.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gallop::schedule {

namespace {

constexpr double kGrowth = 1.03;   // In two doublings.
constexpr double kFast = 0.95;     // Relative to the fastest.
constexpr double kSlow = 0.8;      // Relative to the fastest so far: measured again.
constexpr double kCaution = 0.97;  // Safety factor of the memory estimate.
constexpr int64_t kExact = 8;      // The largest batch is found to 1/8.

class Search {
 public:
  Search(const TryBatch& try_batch, const BatchLimits& limits) : try_(try_batch), limits_(limits) {}

  BatchSearch run() {
    int64_t batch = std::min(limits_.first, limits_.most);
    while (batch > 1 && !fits(batch)) batch /= 2;
    if (found_.points.empty() && !fits(batch)) return found_;
    while (!found_.too_large && grows() && last().batch < limits_.most &&
           is_short(last().batch * 2)) {
      fits(std::min(2 * last().batch, limits_.most));
    }
    if (!limits_.largest) return found_;
    if (!found_.too_large && last().batch < limits_.most) guess();
    while (found_.too_large && *found_.too_large - last().batch > 1 + last().batch / kExact) {
      const int64_t middle = (last().batch + *found_.too_large) / 2;
      if (!is_short(middle)) break;
      fits(middle);
    }
    return found_;
  }

 private:
  const BatchPoint& last() const { return found_.points.back(); }

  bool fits(int64_t batch) {
    auto point = try_(batch);
    if (point) {
      found_.points.push_back(seems_slow(*point) ? faster(*point, try_(batch)) : *point);
    } else {
      found_.too_large = batch;
    }
    return point.has_value();
  }

  bool seems_slow(const BatchPoint& point) const {
    return std::any_of(found_.points.begin(), found_.points.end(), [&](const BatchPoint& other) {
      return point.samples_per_second < kSlow * other.samples_per_second;
    });
  }

  static BatchPoint faster(const BatchPoint& point, const std::optional<BatchPoint>& again) {
    const bool is_faster = again && again->samples_per_second > point.samples_per_second;
    return is_faster ? *again : point;
  }

  bool grows() const {
    const auto& points = found_.points;
    return points.size() < 3 ||
           last().samples_per_second > kGrowth * points[points.size() - 3].samples_per_second;
  }

  // Estimated from the steps so far.
  bool is_short(int64_t batch) {
    const double seconds = static_cast<double>(batch) / last().samples_per_second;
    found_.cut_short = found_.cut_short || seconds > limits_.step_seconds;
    return seconds <= limits_.step_seconds;
  }

  // Assumes that memory is linear in the batch size.
  void guess() {
    const auto& points = found_.points;
    if (points.size() < 2) return;
    const BatchPoint &a = points[points.size() - 2], &b = points.back();
    const double slope =
        static_cast<double>(b.bytes - a.bytes) / static_cast<double>(b.batch - a.batch);
    double batch = static_cast<double>(limits_.most);
    if (slope > 0) {
      const double more = static_cast<double>(limits_.bytes - b.bytes) / slope;
      batch = std::min(batch, kCaution * (static_cast<double>(b.batch) + more));
    }
    auto guessed = static_cast<int64_t>(batch);
    if (!is_short(guessed)) {
      guessed = static_cast<int64_t>(limits_.step_seconds * b.samples_per_second);
    }
    if (guessed > b.batch) fits(guessed);
  }

  const TryBatch& try_;
  const BatchLimits& limits_;
  BatchSearch found_;
};

}  // namespace

BatchSearch search_batches(const TryBatch& try_batch, const BatchLimits& limits) {
  return Search(try_batch, limits).run();
}

int64_t fastest_from(const std::vector<BatchPoint>& points) {
  double best = 0;
  for (const auto& point : points) best = std::max(best, point.samples_per_second);
  const auto found = std::find_if(points.begin(), points.end(), [&](const BatchPoint& point) {
    return point.samples_per_second >= kFast * best;
  });
  return found->batch;
}

int64_t suggested_batch(const BatchSearch& search, std::optional<double> critical) {
  const int64_t fast = fastest_from(search.points);
  if (!critical || *critical >= static_cast<double>(fast)) return fast;
  const auto most = static_cast<uint64_t>(std::max(1.0, *critical));
  return static_cast<int64_t>(std::bit_floor(most));
}

}  // namespace gallop::schedule
