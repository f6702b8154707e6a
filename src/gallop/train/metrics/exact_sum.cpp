#include "gallop/train/metrics/exact_sum.h"

#include <cmath>
#include <limits>

namespace gallop::train {

namespace {

constexpr int kDigitBits = 32;
constexpr int kLowest = 1152;  // The first digit counts units of 2^-1152.
constexpr int kMantissaBits = 53;
constexpr int64_t kDigitMask = 0xffffffff;
constexpr int64_t kMostPending = int64_t{1} << 29;  // Each adds less than 2^33 to a digit.

}  // namespace

void ExactSum::add(double value) {
  if (!std::isfinite(value)) {
    (std::isnan(value) ? nans_ : value > 0 ? positive_infinities_ : negative_infinities_) += 1;
    return;
  }
  if (value == 0) return;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  auto mantissa = static_cast<int64_t>(std::ldexp(fraction, kMantissaBits));
  const int64_t sign = mantissa < 0 ? -1 : 1;
  mantissa *= sign;
  const int place = exponent - kMantissaBits + kLowest;
  const auto digit = static_cast<size_t>(place / kDigitBits);
  const int shift = place % kDigitBits;
  // At most 53 + 31 bits, which lie in three digits.
  const int64_t low = (mantissa & kDigitMask) << shift;
  const int64_t high = (mantissa >> kDigitBits) << shift;
  digits_[digit] += sign * (low & kDigitMask);
  digits_[digit + 1] += sign * ((low >> kDigitBits & kDigitMask) + (high & kDigitMask));
  digits_[digit + 2] += sign * (high >> kDigitBits);
  if (++pending_ >= kMostPending) settle();
}

// Propagates carries: digits are then in [0, 2^32), except for the last, which has the sign.
void ExactSum::settle() {
  int64_t carry = 0;
  for (size_t i = 0; i + 1 < digits_.size(); ++i) {
    const int64_t digit = digits_[i] + carry;
    digits_[i] = digit & kDigitMask;
    carry = digit >> kDigitBits;
  }
  digits_.back() += carry;
  pending_ = 0;
}

ExactSum ExactSum::settled() const {
  ExactSum sum = *this;
  sum.settle();
  return sum;
}

void ExactSum::merge(const ExactSum& other) {
  settle();
  const ExactSum more = other.settled();
  for (size_t i = 0; i < digits_.size(); ++i) digits_[i] += more.digits_[i];
  pending_ = 1;
  nans_ += more.nans_;
  positive_infinities_ += more.positive_infinities_;
  negative_infinities_ += more.negative_infinities_;
}

void ExactSum::add_product(double one, double other) {
  const double product = one * other;
  add(product);
  if (std::isfinite(product)) add(std::fma(one, other, -product));
}

double ExactSum::value() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (nans_ > 0 || (positive_infinities_ > 0 && negative_infinities_ > 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (positive_infinities_ > 0) return kInfinity;
  if (negative_infinities_ > 0) return -kInfinity;
  ExactSum sum = settled();
  const bool is_negative = sum.digits_.back() < 0;
  if (is_negative) {
    for (int64_t& digit : sum.digits_) digit = -digit;
    sum.settle();
  }
  // Four digits have at least 97 significant bits.
  size_t first = sum.digits_.size();
  while (first > 0 && sum.digits_[first - 1] == 0) --first;
  long double value = 0;
  for (size_t i = first; i-- > 0;) {
    value += std::ldexp(static_cast<long double>(sum.digits_[i]),
                        static_cast<int>(i) * kDigitBits - kLowest);
    if (first - i == 4) break;
  }
  return static_cast<double>(is_negative ? -value : value);
}

bool ExactSum::operator==(const ExactSum& other) const {
  const ExactSum one = settled(), two = other.settled();
  return one.digits_ == two.digits_ && nans_ == other.nans_ &&
         positive_infinities_ == other.positive_infinities_ &&
         negative_infinities_ == other.negative_infinities_;
}

}  // namespace gallop::train
