#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "gallop/kernel/cpu/math_ieee_table.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
using Unary = MathIeeeTable::Unary;
using Binary = MathIeeeTable::Binary;
using Truth = std::function<double(double)>;

float at(Unary function, float x) {
  float in[kLanes], out[kLanes];
  std::fill(in, in + kLanes, x);
  function(in, out);
  return out[5];
}
float at(Binary function, float a, float b) {
  float left[kLanes], right[kLanes], out[kLanes];
  std::fill(left, left + kLanes, a);
  std::fill(right, right + kLanes, b);
  function(left, right, out);
  return out[5];
}

bool is_same(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

class MathMore : public IsaTest {
 protected:
  MathIeeeTable table() const { return kernels_for<MathIeeeTable>(GetParam()); }
};

// In units in the last place, over numbers whose bits are spread evenly from those of `from` to
// those of `to`: all sizes alike.
double largest_error(Unary function, const Truth& truth, float from, float to) {
  const auto first = std::bit_cast<uint32_t>(std::abs(from));
  const auto last = std::bit_cast<uint32_t>(std::abs(to));
  constexpr uint32_t kSteps = 100'000;
  double largest = 0;
  for (uint32_t step = 0; step < kSteps; ++step) {
    float x[kLanes], y[kLanes];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint64_t share = uint64_t{last - first} * (step * kLanes + lane) / (kSteps * kLanes);
      const auto size = std::bit_cast<float>(first + static_cast<uint32_t>(share));
      x[lane] = from < 0 ? -size : size;
    }
    function(x, y);
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double wanted = truth(static_cast<double>(x[lane]));
      const double unit =
          std::max(std::exp2(std::floor(std::log2(std::abs(wanted))) - 23), 0x1p-149);
      largest = std::max(largest, std::abs(static_cast<double>(y[lane]) - wanted) / unit);
    }
  }
  return largest;
}

TEST_P(MathMore, IsWithinTheDocumentedErrorBounds) {
  const auto check = [&](const char* name, Unary function, const Truth& truth, float from, float to,
                         double ulps) {
    // Bounds are stated for machines with fused multiply-add.
    const double bound = GetParam() == Isa::kBaseline ? 2 * ulps + 0.5 : ulps;
    EXPECT_LE(largest_error(function, truth, from, to), bound) << name << " " << from << " " << to;
  };
  const Truth exp = [](double x) { return std::exp(x); };
  const Truth expm1 = [](double x) { return std::expm1(x); };
  const Truth log1p = [](double x) { return std::log1p(x); };
  const Truth sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (const float sign : {1.0F, -1.0F}) {
    check("exp", table().exp, exp, sign * 1e-9F, sign * 87, 1.1);
    check("expm1", table().expm1, expm1, sign * 1e-30F, sign * 88, 2);
    check("log1p", table().log1p, log1p, sign * 1e-30F, sign < 0 ? -0.9999F : 1e30F, 2.5);
    check("sigmoid", table().sigmoid, sigmoid, sign * 1e-9F, sign * 87, 3);
    check(
        "tanh", table().tanh, [](double x) { return std::tanh(x); }, sign * 1e-30F, sign * 20, 2);
    check(
        "erf", table().erf, [](double x) { return std::erf(x); }, sign * 1e-30F, sign * 9, 2);
  }
}

TEST_P(MathMore, HandlesIeeeSpecialValues) {
  const MathIeeeTable t = table();
  for (const Unary f : {t.exp, t.expm1, t.log1p, t.sigmoid, t.tanh, t.erf, t.exact_root,
                        t.round_down, t.round_up, t.round_to_zero, t.as_bf16}) {
    EXPECT_TRUE(std::isnan(at(f, kNan)));
  }
  for (const Unary f : {t.expm1, t.log1p, t.tanh, t.erf, t.exact_root, t.round_down, t.round_up,
                        t.round_to_zero, t.as_bf16}) {
    for (const float zero : {0.0F, -0.0F}) EXPECT_TRUE(is_same(at(f, zero), zero));
  }
  struct Case {
    Unary function;
    float x, y;
  };
  for (const auto& [function, x, y] :
       std::initializer_list<Case>{{t.exp, kInfinity, kInfinity},
                                   {t.exp, -kInfinity, 0},
                                   {t.exp, 100, kInfinity},
                                   {t.expm1, kInfinity, kInfinity},
                                   {t.expm1, 100, kInfinity},
                                   {t.expm1, -kInfinity, -1},
                                   {t.expm1, -50, -1},
                                   {t.log1p, -1, -kInfinity},
                                   {t.log1p, -2, kNan},
                                   {t.log1p, kInfinity, kInfinity},
                                   {t.sigmoid, -kInfinity, 0},
                                   {t.sigmoid, kInfinity, 1},
                                   {t.tanh, -kInfinity, -1},
                                   {t.erf, kInfinity, 1},
                                   {t.exact_root, kInfinity, kInfinity},
                                   {t.exact_root, -1, kNan},
                                   {t.as_bf16, kInfinity, kInfinity}}) {
    EXPECT_TRUE(is_same(at(function, x), y)) << x << " " << y << " " << at(function, x);
  }
}

constexpr std::array kNumbers = {0.0F,       -0.0F,      1.0F, -1.0F,      0.5F,   -0.5F,
                                 1.5F,       -2.5F,      3.7F, -3.7F,      1e-38F, 0x1p-140F,
                                 -0x1p-149F, 8388609.F,  3e9F, -1e30F,     3e38F,  1e-20F,
                                 kInfinity,  -kInfinity, kNan, 16777217.F, 0.1F,   -7.0F};

TEST_P(MathMore, IsExactWhereDocumented) {
  const MathIeeeTable t = table();
  for (const float x : kNumbers) {
    EXPECT_TRUE(is_same(at(t.round_down, x), std::floor(x))) << x;
    EXPECT_TRUE(is_same(at(t.round_up, x), std::ceil(x))) << x;
    EXPECT_TRUE(is_same(at(t.round_to_zero, x), std::trunc(x))) << x;
    EXPECT_TRUE(is_same(at(t.flip_sign, x), -x)) << x;
    EXPECT_TRUE(is_same(at(t.without_sign, x), std::abs(x))) << x;
    EXPECT_TRUE(is_same(at(t.exact_root, x), std::sqrt(x))) << x;
    for (const float y : kNumbers) {
      EXPECT_TRUE(is_same(at(t.divide, x, y), x / y)) << x << " " << y;
      EXPECT_TRUE(is_same(at(t.with_sign_of, x, y), std::copysign(x, y))) << x << " " << y;
      EXPECT_EQ(at(t.is_equal, x, y) != 0, x == y) << x << " " << y;
      EXPECT_EQ(at(t.is_less, x, y) != 0, x < y) << x << " " << y;
      EXPECT_EQ(at(t.is_less_equal, x, y) != 0, x <= y) << x << " " << y;
      const bool nan = std::isnan(x) || std::isnan(y);
      const float larger = at(t.max, x, y), smaller = at(t.min, x, y);
      EXPECT_TRUE(nan ? std::isnan(larger) : larger == std::max(x, y)) << x << " " << y;
      EXPECT_TRUE(nan ? std::isnan(smaller) : smaller == std::min(x, y)) << x << " " << y;
    }
  }
}

TEST_P(MathMore, ReadsAndWritesBoolsOnePerByte) {
  for (int64_t count = 0; count <= kLanes; ++count) {
    std::array<uint8_t, kLanes + 1> a{}, b{}, y{};
    y.fill(7);
    for (size_t i = 0; i <= kLanes; ++i) {
      a[i] = i % 2 == 0;
      b[i] = i % 3 == 0;
    }
    table().differ(a.data(), b.data(), y.data(), count);
    for (size_t i = 0; i <= kLanes; ++i) {
      EXPECT_EQ(y[i], static_cast<int64_t>(i) < count ? a[i] ^ b[i] : 7) << count << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernel, MathMore, every_isa());

}  // namespace
}  // namespace gallop::kernel
