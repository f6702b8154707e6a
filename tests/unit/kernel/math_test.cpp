#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/kernel/cpu/math_table.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Errors in units in the last place of the true value, which fp64 tells.
double largest_error(void (*function)(const float*, float*),
                     const std::function<double(double)>& truth, double from, double to,
                     int64_t steps) {
  double largest = 0;
  float x[kLanes], y[kLanes];
  for (int64_t i = 0; i < steps; ++i) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double share = (static_cast<double>(i) + static_cast<double>(lane) / kLanes) /
                           static_cast<double>(steps);
      x[lane] = static_cast<float>(from + share * (to - from));
    }
    function(x, y);
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double wanted = truth(static_cast<double>(x[lane]));
      const double ulp =
          std::max(std::exp2(std::floor(std::log2(std::abs(wanted))) - 23), 0x1p-149);
      largest = std::max(largest, std::abs(static_cast<double>(y[lane]) - wanted) / ulp);
    }
  }
  return largest;
}

float at(void (*function)(const float*, float*), float x) {
  float in[kLanes], out[kLanes];
  std::fill(in, in + kLanes, x);
  function(in, out);
  return out[3];
}

class Math : public IsaTest {
 protected:
  MathTable table() const { return kernels_for<MathTable>(GetParam()); }
  // Bounds are stated for machines with fused multiply-add.
  double bound(double ulps) const { return GetParam() == Isa::kBaseline ? 2 * ulps + 0.5 : ulps; }
};

TEST_P(Math, IsWithinTheDocumentedErrorBounds) {
  const auto check = [&](const char* name, void (*function)(const float*, float*),
                         const std::function<double(double)>& truth, double from, double to,
                         double ulps, int64_t steps = 100'000) {
    EXPECT_LE(largest_error(function, truth, from, to, steps), bound(ulps))
        << name << " " << from << " " << to;
  };
  for (const double to : {0.01, 1.0, 20.0, 87.0}) {
    check(
        "exp", table().exp, [](double x) { return std::exp(x); }, -to, to, 1.1);
    check(
        "sigmoid", table().sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -to, to, 3);
  }
  // Around 1, where it is hardest, and in every binade.
  const auto log = [](double x) { return std::log(x); };
  for (const double from : {0.5, 0.7, 0.9, 0.999, 1.0, 1.001, 1.4}) {
    check("log", table().log, log, from, from * 1.5, 0.9);
  }
  for (int power = -149; power < 128; ++power) {
    check("log", table().log, log, std::exp2(power), std::exp2(power + 1) * (1 - 0x1p-24), 0.9,
          /*steps=*/1000);
  }
  for (const double to : {0.01, 0.5, 1.0, 5.0, 20.0}) {
    check(
        "tanh", table().tanh, [](double x) { return std::tanh(x); }, -to, to, 2);
    check(
        "erf", table().erf, [](double x) { return std::erf(x); }, -to, to, 2);
  }
  for (const double to : {1e-30, 1.0, 1e30}) {
    check(
        "root", table().root, [](double x) { return std::sqrt(x); }, to / 10, to, 1);
    check(
        "quotient", table().quotient, [](double x) { return 1 / x; }, to / 10, to, 1);
    check(
        "inverse", table().inverse, [](double x) { return 1 / x; }, to / 10, to, 1);
  }
}

TEST_P(Math, IsCorrectAtTheLimits) {
  EXPECT_EQ(at(table().exp, 0), 1);
  EXPECT_EQ(at(table().exp, -kInfinity), 0);
  EXPECT_EQ(at(table().exp, -200), 0);
  EXPECT_EQ(at(table().exp, 100), kInfinity);
  EXPECT_GT(at(table().exp, -100), 0);
  EXPECT_EQ(at(table().log, 1), 0);
  EXPECT_EQ(at(table().log, 0), -kInfinity);
  EXPECT_EQ(at(table().log, -0.0F), -kInfinity);
  EXPECT_EQ(at(table().log, kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(at(table().log, -1)));
  EXPECT_TRUE(std::isnan(at(table().log, std::nanf(""))));
  EXPECT_EQ(at(table().sigmoid, 200), 1);
  EXPECT_EQ(at(table().sigmoid, 0), 0.5F);
  EXPECT_LT(at(table().sigmoid, -200), 1e-37F);
  for (auto* function : {table().tanh, table().erf}) {
    EXPECT_EQ(at(function, 0), 0);
    EXPECT_EQ(at(function, 1000), 1);
    EXPECT_EQ(at(function, -1000), -1);
    EXPECT_EQ(at(function, -0.3F), -at(function, 0.3F));
  }
  EXPECT_EQ(at(table().root, 0), 0);
  EXPECT_EQ(at(table().root, 4), 2);
}

TEST_P(Math, RoundsToBf16ByTheDefinition) {
  // All upper halves, with lower halves around the middle.
  for (uint32_t high = 0; high < 0x10000; ++high) {
    float x[kLanes];
    Bf16 y[kLanes] = {};
    const uint32_t lows[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    for (size_t i = 0; i < 6; ++i) {
      const uint32_t bits = high << 16 | lows[i];
      std::memcpy(x + i, &bits, 4);
    }
    table().to_bf16(x, y, 6);
    for (size_t i = 0; i < 6; ++i) {
      const uint32_t up = lows[i] > 0x8000 || (lows[i] == 0x8000 && high % 2 == 1) ? 1 : 0;
      if (std::isnan(x[i])) {
        EXPECT_EQ(y[i].bits & 0x7fc0, 0x7fc0);
      } else if (GetParam() >= Isa::kAvx512Bf16 && std::fpclassify(x[i]) == FP_SUBNORMAL) {
        EXPECT_EQ(y[i].bits, high & 0x8000);  // Its instruction knows none.
      } else {
        EXPECT_EQ(y[i].bits, (high + up) & 0xffff) << high << " " << lows[i];
      }
    }
    EXPECT_EQ(y[6].bits, 0);
    float back[kLanes] = {};
    table().from_bf16(y, back, 6);
    for (size_t i = 0; i < 6; ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, back + i, 4);
      EXPECT_EQ(bits, static_cast<uint32_t>(y[i].bits) << 16);
    }
    EXPECT_EQ(back[6], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernel, Math, every_isa());

}  // namespace
}  // namespace gallop::kernel
