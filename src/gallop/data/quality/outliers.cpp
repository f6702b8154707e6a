#include "gallop/data/quality/outliers.h"

#include <algorithm>
#include <cmath>

namespace gallop::data {

namespace {

// With linear interpolation, as numpy.percentile.
double quantile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = place - static_cast<double>(below);
  return sorted[below] + weight * (sorted[above] - sorted[below]);
}

}  // namespace

Fences fences(std::vector<double> values, double factor, double margin) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double low = quantile(values, 0.25), high = quantile(values, 0.75);
  const double distance = std::max(margin, factor * (high - low));
  return {.low = low - distance, .high = high + distance};
}

std::vector<int64_t> outliers(const std::vector<double>& values, const Fences& fences) {
  const auto excess = [&](int64_t i) {
    const double value = values[static_cast<size_t>(i)];
    return std::max(fences.low - value, value - fences.high);
  };
  std::vector<int64_t> found;
  for (size_t i = 0; i < values.size(); ++i) {
    if (excess(static_cast<int64_t>(i)) > 0) found.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(found.begin(), found.end(),
                   [&](int64_t a, int64_t b) { return excess(a) > excess(b); });
  return found;
}

}  // namespace gallop::data
