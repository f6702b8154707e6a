#include "gallop/track/run_comparison.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace gallop::track {

namespace {

using Key = std::pair<int64_t, std::string>;  // Step and metric.

constexpr std::array kOfTheMachine = {"seconds", "samples_per_second", "wait_share",
                                      "training_seconds", "joules"};

// Whether a metric is a result of the computation, as opposed to its speed.
bool is_result(const std::string& metric) {
  // The number of interruptions is not a result.
  if (metric.starts_with("end.") || metric.starts_with("system.")) return false;
  const std::string name = metric.substr(metric.rfind('.') + 1);
  return std::find(kOfTheMachine.begin(), kOfTheMachine.end(), name) == kOfTheMachine.end();
}

std::map<Key, double> results_of(const Log& log) {
  std::map<Key, double> results;
  for_each_point(log, [&](const Point& point) {
    if (is_result(point.metric)) results[{point.step, point.metric}] = point.value;
  });
  return results;
}

std::optional<double> value_at(const std::map<Key, double>& results, const Key& key) {
  const auto found = results.find(key);
  return found != results.end() ? std::optional(found->second) : std::nullopt;
}

bool have_same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

}  // namespace

RunComparison compare_results(const Log& one, const Log& other) {
  const auto first = results_of(one), second = results_of(other);
  std::set<Key> keys;
  std::set<std::string> metrics;
  for (const auto* results : {&first, &second}) {
    for (const auto& [key, value] : *results) {
      keys.insert(key);
      metrics.insert(key.second);
    }
  }
  RunComparison comparison{.compared = static_cast<int64_t>(keys.size()),
                           .metrics = static_cast<int64_t>(metrics.size())};
  for (const Key& key : keys) {
    const auto a = value_at(first, key), b = value_at(second, key);
    if (a && b && have_same_bits(*a, *b)) continue;
    comparison.differences.push_back(
        {.step = key.first, .metric = key.second, .one = a, .other = b});
  }
  return comparison;
}

}  // namespace gallop::track
