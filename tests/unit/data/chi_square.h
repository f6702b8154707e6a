#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace gallop::data {

/// Expects counts whose chi-square statistic is exceeded with a probability above 1e-3 if the
/// probabilities are `expected` (by the approximation of Wilson and Hilferty, 1931). Categories
/// with fewer than 5 expected counts are merged.
inline void expect_distribution(const std::map<std::string, int64_t>& counts,
                                const std::map<std::string, double>& expected, int64_t draws) {
  double statistic = 0, sum = 0, rare_expected = 0;
  int64_t rare = 0;
  int categories = 0;
  const auto add = [&](int64_t count, double mean) {
    statistic += (static_cast<double>(count) - mean) * (static_cast<double>(count) - mean) / mean;
    ++categories;
  };
  for (const auto& [name, count] : counts) {
    const auto found = expected.find(name);
    EXPECT_TRUE(found != expected.end() && found->second > 0) << "impossible: " << name;
  }
  for (const auto& [name, probability] : expected) {
    sum += probability;
    const auto found = counts.find(name);
    const int64_t count = found == counts.end() ? 0 : found->second;
    const double mean = probability * static_cast<double>(draws);
    if (mean < 5) {
      rare_expected += mean;
      rare += count;
    } else {
      add(count, mean);
    }
  }
  ASSERT_NEAR(sum, 1, 1e-6);
  if (rare_expected >= 5) add(rare, rare_expected);
  const double freedom = categories - 1;
  if (freedom == 0) return;
  const double z =
      (std::cbrt(statistic / freedom) - (1 - 2 / (9 * freedom))) / std::sqrt(2 / (9 * freedom));
  EXPECT_LT(z, 3.09) << "chi-square " << statistic << " of " << freedom << " degrees of freedom";
}

/// The same for values in 0..1 with this distribution function, in 50 bins of equal probability.
inline void expect_distribution_function(const std::vector<double>& values,
                                         const std::function<double(double)>& function) {
  constexpr int kBins = 50;
  std::map<std::string, int64_t> counts;
  std::map<std::string, double> expected;
  for (int bin = 0; bin < kBins; ++bin) expected[std::to_string(bin)] = 1.0 / kBins;
  for (const double value : values) {
    const int bin = static_cast<int>(function(std::clamp(value, 0.0, 1.0)) * kBins);
    ++counts[std::to_string(std::clamp(bin, 0, kBins - 1))];
  }
  expect_distribution(counts, expected, static_cast<int64_t>(values.size()));
}

}  // namespace gallop::data
