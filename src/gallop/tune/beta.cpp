#include "gallop/tune/beta.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace gallop::tune {

namespace {

constexpr int kMostTerms = 100000;  // Iteration limit; about sqrt(max(a, b)) are needed.

// The log-gamma function, by lgamma_r(): std::lgamma() writes to a global variable.
double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

// Lentz's method; converges fast for x below (a + 1) / (a + b + 2).
double continued_fraction(double x, double a, double b) {
  constexpr double kLeast = std::numeric_limits<double>::min();
  const auto nonzero = [](double value) { return std::abs(value) < kLeast ? kLeast : value; };
  double c = 1, d = 1 / nonzero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int term = 1; term < kMostTerms; ++term) {
    const double m = term;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double numerator : {even, odd}) {
      d = 1 / nonzero(1 + numerator * d);
      c = nonzero(1 + numerator / c);
      change = c * d;
      fraction *= change;
    }
    if (std::abs(change - 1) < std::numeric_limits<double>::epsilon()) break;
  }
  return fraction;
}

double lower_part(double x, double a, double b) {
  const double log_factor =
      log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x);
  return std::exp(log_factor) * continued_fraction(x, a, b) / a;
}

}  // namespace

double beta_cdf(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  return x < (a + 1) / (a + b + 2) ? lower_part(x, a, b) : 1 - lower_part(1 - x, b, a);
}

double beta_quantile(double p, double a, double b) {
  if (p <= 0) return 0;
  if (p >= 1) return 1;
  // Bisects over the bit patterns, which are ordered like the positive doubles that they represent.
  auto low = std::bit_cast<uint64_t>(0.0), high = std::bit_cast<uint64_t>(1.0);
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (beta_cdf(std::bit_cast<double>(middle), a, b) < p ? low : high) = middle;
  }
  return std::bit_cast<double>(high);
}

}  // namespace gallop::tune
