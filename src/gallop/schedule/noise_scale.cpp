#include "gallop/schedule/noise_scale.h"

#include "gallop/base/error.h"

namespace gallop::schedule {

NoiseScale::NoiseScale(int64_t small, int64_t big)
    : small_(static_cast<double>(small)), big_(static_cast<double>(big)) {
  if (!(small > 0 && big > small)) throw InternalError("noise scale: batches of wrong sizes");
}

void NoiseScale::add(double small_square, double big_square) {
  gradient_squares_ += (big_ * big_square - small_ * small_square) / (big_ - small_);
  variances_ += (small_square - big_square) / (1 / small_ - 1 / big_);
  count_ += 1;
}

double NoiseScale::gradient_square() const {
  return count_ > 0 ? gradient_squares_ / static_cast<double>(count_) : 0;
}

double NoiseScale::variance() const {
  return count_ > 0 ? variances_ / static_cast<double>(count_) : 0;
}

std::optional<double> NoiseScale::batch() const {
  if (!(gradient_squares_ > 0) || !(variances_ > 0)) return {};
  return variances_ / gradient_squares_;
}

}  // namespace gallop::schedule
