#pragma once

#include <cstdint>
#include <vector>

#include <c10/core/ScalarType.h>

namespace gallop::data {

/// The mean and standard deviation of each channel or column.
struct Normalization {
  std::vector<double> mean, deviation;
};

/// Converts bytes to (value / 255 - mean) / deviation per channel. Rounding is the same on all
/// machines, because multiplication and addition are never fused.
class Normalizer {
 public:
  /// One mean and one deviation (above 0) per channel, in units of the full range; 1 or 3 channels.
  /// `dtype` is Float or BFloat16 (rounded to nearest even).
  Normalizer(const std::vector<double>& mean, const std::vector<double>& deviation,
             c10::ScalarType dtype);

  c10::ScalarType dtype() const { return dtype_; }

  /// Converts `count` bytes of interleaved channels, starting with channel 0.
  void write(const uint8_t* bytes, int64_t count, void* out) const;

 private:
  // Repeated for 1 and 3 channels, to a multiple of the vector size.
  static constexpr int kBlock = 48;

  c10::ScalarType dtype_;
  alignas(64) float scale_[kBlock];
  alignas(64) float shift_[kBlock];
};

}  // namespace gallop::data
