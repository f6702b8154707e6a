#pragma once

#include <array>
#include <cstdint>

namespace gallop::train {

/// An exact sum of doubles, whose bits depend neither on the order nor on the grouping of what is
/// added (the long accumulator of Kulisch, "Computer Arithmetic and Validity", 2008): a fixed-point
/// number of 2,304 bits in 32-bit digits with delayed carries.
class ExactSum {
 public:
  void add(double value);
  void merge(const ExactSum& other);

  /// Adds the product of two numbers, exactly unless it underflows.
  void add_product(double one, double other);

  /// The sum as a double. NaN if the sum has a NaN or infinities of both signs.
  double value() const;

  bool operator==(const ExactSum& other) const;

 private:
  static constexpr int kDigits = 72;  // From 2^-1152 to 2^1152.

  void settle();
  ExactSum settled() const;

  std::array<int64_t, kDigits> digits_{};
  int64_t pending_ = 0;  // Additions since carries were last propagated.
  int64_t nans_ = 0, positive_infinities_ = 0, negative_infinities_ = 0;
};

static_assert(sizeof(ExactSum) == 76 * sizeof(int64_t));  // Sent to other processes as bytes.

}  // namespace gallop::train
