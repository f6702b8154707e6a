#include "gallop/schedule/lr_suggestion.h"

#include <algorithm>
#include <cmath>

namespace gallop::schedule {

namespace {

using Points = std::span<const RangePoint>;

size_t index_of_minimum(Points points) {
  const auto lower = [](const RangePoint& a, const RangePoint& b) {
    return a.smoothed < b.smoothed;
  };
  return static_cast<size_t>(std::min_element(points.begin(), points.end(), lower) -
                             points.begin());
}

// Drops the first losses, which are insensitive to the rate, and the last ones, which have
// diverged.
Points without_ends(Points points) {
  constexpr size_t kLast = 5;
  const size_t first = points.size() / 10;
  return points.size() > first + kLast + 1 ? points.subspan(first, points.size() - first - kLast)
                                           : points;
}

std::optional<double> valley(Points all) {
  const Points points = without_ends(all);
  if (points.empty()) return {};
  // The longest decreasing subsequence of losses that ends here.
  struct Fall {
    size_t begin, length;
  };
  std::vector<Fall> falls;
  size_t end = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    falls.push_back({.begin = i, .length = 1});
    for (size_t j = 0; j < i; ++j) {
      if (points[i].smoothed < points[j].smoothed && falls[j].length + 1 > falls[i].length) {
        falls[i] = {.begin = falls[j].begin, .length = falls[j].length + 1};
      }
    }
    if (falls[i].length > falls[end].length) end = i;
  }
  if (falls[end].length < 2) return {};
  return points[(falls[end].begin + end) / 2].lr;
}

std::optional<double> steepest(Points all) {
  const Points points = without_ends(all);
  std::optional<double> best;
  double least = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    const double slope =
        (points[i].smoothed - points[i - 1].smoothed) / std::log(points[i].lr / points[i - 1].lr);
    if (slope >= least) continue;
    least = slope;
    best = points[i - 1].lr;
  }
  return best;
}

std::optional<double> tenth_of_minimum(Points points) {
  if (points.empty()) return {};
  const size_t minimum = index_of_minimum(points);
  if (minimum == 0) return {};
  return points[minimum].lr / 10;
}

// Each estimate alone is far off for some problems, in opposite directions.
std::optional<double> between(Points points) {
  const auto one = steepest(points), other = tenth_of_minimum(points);
  if (!one || !other) return one ? one : other;
  return std::sqrt(*one * *other);
}

double slope_at(Points points, size_t i) {
  const size_t before = i == 0 ? 0 : i - 1, after = std::min(i + 1, points.size() - 1);
  return (points[after].smoothed - points[before].smoothed) / static_cast<double>(after - before);
}

// Moves back from the end until the slopes of nearby points agree, where the curve is still stable.
std::optional<double> slide(Points all) {
  constexpr size_t kApart = 15;
  constexpr double kAlike = 0.005;
  const Points points = without_ends(all);
  if (points.size() <= kApart) return {};
  size_t right = points.size() - 1;
  std::optional<double> found;
  for (; right >= kApart; --right) {
    const size_t left = right - kApart;
    if (std::abs(slope_at(points, right) - slope_at(points, left)) <= kAlike) break;
    found = points[left].lr;
  }
  return found;
}

}  // namespace

double SmoothedLoss::add(double loss) {
  mean_ = memory_ * mean_ + (1 - memory_) * loss;
  bias_ *= memory_;
  return mean_ / (1 - bias_);
}

std::vector<double> rates_between(double min, double max, int64_t count, bool linear) {
  std::vector<double> rates;
  rates.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const double share = count == 1 ? 0 : static_cast<double>(i) / static_cast<double>(count - 1);
    rates.push_back(linear ? std::lerp(min, max, share) : min * std::pow(max / min, share));
  }
  return rates;
}

const std::vector<LrRule>& lr_rules() {
  static const std::vector<LrRule> kRules = {
      {"between", "the geometric mean of the next two", between},
      {"steepest", "where the loss falls fastest", steepest},
      {"minimum/10", "a tenth of the rate with the lowest loss", tenth_of_minimum},
      {"valley", "the middle of the longest decreasing run", valley},
      {"slide", "the last rate before the loss diverges", slide},
  };
  return kRules;
}

std::optional<LrRange> range_of_fall(Points points) {
  if (points.empty()) return {};
  const size_t end = index_of_minimum(points);
  const auto highest = std::max_element(
      points.begin(), points.begin() + static_cast<int64_t>(end),
      [](const RangePoint& a, const RangePoint& b) { return a.smoothed < b.smoothed; });
  const double fall = highest->smoothed - points[end].smoothed;
  if (end == 0 || fall <= 0) return {};
  const auto first_below = [&](double share) {
    const double loss = highest->smoothed - share * fall;
    return std::find_if(highest, points.end(),
                        [loss](const RangePoint& point) { return point.smoothed <= loss; })
        ->lr;
  };
  return LrRange{first_below(0.1), first_below(0.9)};
}

}  // namespace gallop::schedule
