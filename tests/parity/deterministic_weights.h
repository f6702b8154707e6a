#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

// Values from a hash of a name and a position, the same as in make_models.py, so that fixtures
// contain only results.
namespace gallop::parity {

/// SplitMix64 of the name's FNV-1a hash plus the position.
class Hashes {
 public:
  explicit Hashes(const std::string& name) {
    for (const unsigned char byte : name) state_ = (state_ ^ byte) * 0x100000001B3u;
  }
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// In [-1, 1), with 24 bits.
  double next_uniform() { return static_cast<double>(next() >> 40) * 0x1p-23 - 1; }
  double next_sign() { return next() >> 63 ? -1 : 1; }

 private:
  uint64_t state_ = 0xCBF29CE484222325u;
};

inline std::vector<double> uniform(const std::string& name, int64_t count) {
  Hashes hashes(name);
  std::vector<double> values(static_cast<size_t>(count));
  for (auto& value : values) value = hashes.next_uniform();
  return values;
}

/// Values of a parameter or a running statistic, each rounded to a float. Matrices and filters have
/// variance 1 / fan_in; scales and variances are near 1, everything else near 0.
inline std::vector<double> weight(const std::string& name, const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  auto values = uniform(name, count);
  double scale = 0.2, offset = 0;
  if (sizes.size() == 2 || sizes.size() == 4) {
    scale = std::sqrt(3.0 / static_cast<double>(count / sizes[0]));
  } else if (name.ends_with("running_var") || (name.ends_with(".weight") && sizes.size() == 1)) {
    offset = 1;
  }
  for (auto& value : values) value = static_cast<float>(offset + scale * value);
  return values;
}

}  // namespace gallop::parity
