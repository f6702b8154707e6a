#include "gallop/tune/samplers/normal_masses.h"

#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/tune/samplers/vector_math.h"

namespace gallop::tune {
namespace {

TEST(VectorMath, MatchesTheStandardLibrary) {
  for (int i = 0; i <= 24'000; ++i) {
    const double x = i / 1000.0;
    EXPECT_NEAR(erfc_of_positive(x) / std::erfc(x), 1, x <= 3 ? 2e-15 : 2e-13) << x;
    EXPECT_NEAR(exp_of_negative(-x) / std::exp(-x), 1, 1e-15) << x;
    const double tail = std::exp(-20 * x);
    for (const double number : {1 + x, 1 / (1 + x), 1 - x * 1e-9, tail}) {
      const double wanted = std::log(number);
      EXPECT_NEAR(log_of_positive(number), wanted, 4e-16 * std::max(1.0, std::abs(wanted)));
    }
  }
  EXPECT_EQ(erfc_of_positive(0), 1);
  EXPECT_EQ(log_of_positive(1), 0);
}

TEST(LogMasses, MatchFortyDigitResults) {
  // Computed with mpmath: center, deviation, logarithm of the share from 0.25 to 0.75.
  constexpr std::array<std::array<double, 3>, 7> kCases = {{{0.5, 0.25, -0.381715146302126072},
                                                            {0, 2, -2.33892193334562037},
                                                            {-3, 0.5, -23.938944355603474},
                                                            {9, 0.25, -548.916362269738114},
                                                            {0.4375, 1, -1.62437183732721682},
                                                            {20, 1, -189.16043705377719},
                                                            {-60, 2, -458.083720755701333}}};
  for (const size_t count : {kCases.size(), 3 * kCases.size()}) {
    std::vector<double> centers, scales, masses(count);
    for (size_t i = 0; i < count; ++i) {
      centers.push_back(kCases[i % kCases.size()][0]);
      scales.push_back(1 / (std::sqrt(2.0) * kCases[i % kCases.size()][1]));
    }
    log_masses({count, centers.data(), scales.data()}, 0.25, 0.75, masses.data());
    for (size_t i = 0; i < count; ++i) {
      EXPECT_NEAR(masses[i], kCases[i % kCases.size()][2], 4e-13) << i;
    }
  }
}

TEST(LogMasses, AreFiniteForAnyDistribution) {
  const std::array<double, 3> centers = {-1e6, 0.5, 1e6}, scales = {10, 1e7, 10};
  std::array<double, 3> masses{};
  log_masses({3, centers.data(), scales.data()}, 0.25, 0.75, masses.data());
  EXPECT_LT(masses[0], -600);
  EXPECT_EQ(masses[1], 0);
  EXPECT_LT(masses[2], -600);
  EXPECT_TRUE(std::isfinite(masses[0]) && std::isfinite(masses[2]));
}

}  // namespace
}  // namespace gallop::tune
