#pragma once

#include <cstdint>
#include <vector>

namespace gallop::data {

/// Values beyond which others are outliers (Tukey, 1977): the quartiles, moved apart by `factor`
/// times the distance between them, and by at least `margin`.
struct Fences {
  double low = 0, high = 0;
};
Fences fences(std::vector<double> values, double factor, double margin);

/// The indices of the values outside of the fences, the farthest first.
std::vector<int64_t> outliers(const std::vector<double>& values, const Fences& fences);

}  // namespace gallop::data
