#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

// Scalar functions that compilers vectorize in a loop: without branches or calls.

namespace gallop::tune {

/// The polynomial sum of coefficients[i] * x^(last - i). Recursive, as compilers do not unroll
/// loops of more than 16 terms; `kNext` is for recursive calls.
template <size_t kNext = 1, size_t kCount>
[[gnu::always_inline]] inline double polynomial(const std::array<double, kCount>& coefficients,
                                                double x, double sum) {
  if constexpr (kNext == kCount) {
    return sum;
  } else {
    return polynomial<kNext + 1>(coefficients, x, sum * x + coefficients[kNext]);
  }
}
template <size_t kCount>
[[gnu::always_inline]] inline double polynomial(const std::array<double, kCount>& coefficients,
                                                double x) {
  return polynomial(coefficients, x, coefficients[0]);
}

/// exp(x) for x <= 0, to a relative error of 2e-16; clamped to 1e-261, as arithmetic with numbers
/// below 1e-308 (denormals) is slow.
[[gnu::always_inline]] inline double exp_of_negative(double x) {
  // 1 / 12!, 1 / 11! ... 1 / 0!
  constexpr std::array kSeries = [] {
    std::array<double, 13> series{};
    double factorial = 1;
    for (size_t i = 0; i < series.size(); ++i) {
      series[series.size() - 1 - i] = 1 / factorial;
      factorial *= static_cast<double>(i + 1);
    }
    return series;
  }();
  constexpr double kLog2E = 1.4426950408889634, kLn2High = 6.93147180369123816490e-01,
                   kLn2Low = 1.90821492927058770002e-10;
  constexpr double kRound = 0x1.8p52;  // Adding it leaves an integer in the low bits.
  x = x > -600 ? x : -600;
  const double shifted = x * kLog2E + kRound;
  const double power = shifted - kRound;
  const double r = x - power * kLn2High - power * kLn2Low;
  const uint64_t exponent = (std::bit_cast<uint64_t>(shifted) << 52) + (uint64_t{1023} << 52);
  return polynomial(kSeries, r) * std::bit_cast<double>(exponent);
}

/// The natural logarithm, to a relative or absolute error of 3e-16; x >= 1e-300.
[[gnu::always_inline]] inline double log_of_positive(double x) {
  // 1 / 19, 1 / 17 ... 1
  constexpr std::array kSeries = [] {
    std::array<double, 10> series{};
    for (size_t i = 0; i < series.size(); ++i) {
      series[series.size() - 1 - i] = 1 / static_cast<double>(2 * i + 1);
    }
    return series;
  }();
  constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  constexpr uint64_t kRootOfHalf = 0x3fe6a09e667f3bcd, kBias = uint64_t{1024} << 52;
  // The exponent of 2^52, whose low bits are integers.
  constexpr uint64_t kWhole = 0x4330000000000000;
  // The mantissa x is in [sqrt(1/2), sqrt(2)), times 2^(biased - 1024).
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t biased = (bits - kRootOfHalf + kBias) >> 52;
  const double power = std::bit_cast<double>(biased | kWhole) - (0x1p52 + 1024);
  const double near_one = std::bit_cast<double>(bits - (biased << 52) + kBias);
  const double s = (near_one - 1) / (near_one + 1);
  return power * kLn2High + (2 * s * polynomial(kSeries, s * s) + power * kLn2Low);
}

/// erfc(x) for x >= 0, to a relative error of 1e-15 up to 3, and 1e-13 up to 24.
[[gnu::always_inline]] inline double erfc_of_positive(double x) {
  // erfc(x) exp(x^2) / t with t = 3 / (3 + x), as a polynomial in 2 t - 1: interpolated at 100
  // Chebyshev nodes with 50 digits, truncated where terms are below 1e-18.
  constexpr std::array<double, 25> kSeries = {
      5.4737143389355124e-11,  -2.7035624320615204e-10, -3.261045462586884e-10,
      2.8979247563442504e-09,  -3.2727855352654995e-10, -1.7060807323371048e-08,
      1.5352633398092827e-08,  7.795122669713157e-08,   -1.3598529515460826e-07,
      -3.329390047636961e-07,  9.217978281196487e-07,   1.5830094253678566e-06,
      -5.823526632789039e-06,  -1.0132683861908935e-05, 3.585383190933426e-05,
      9.225927134071366e-05,   -0.00018276989812552789, -0.001011353998686046,
      -0.00040413887561527735, 0.008942411541350472,    0.03984258709575589,
      0.1034890873001944,      0.19674278570136744,     0.29446481772329447,
      0.3580023023627799};
  const double t = 3 / (3 + x);
  return exp_of_negative(-x * x) * t * polynomial(kSeries, 2 * t - 1);
}

}  // namespace gallop::tune
