#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gallop::train {

/// Samples of one class that are taken for another one.
struct Confusion {
  size_t truth, guess;
  int64_t count;
};

/// The largest counts outside of the diagonal of a matrix of classes, at most `most` of them, the
/// largest first; equal ones in the order of the matrix. Counts of 0 are left out.
std::vector<Confusion> most_frequent_confusions(const std::vector<std::vector<int64_t>>& counts,
                                                size_t most);

}  // namespace gallop::train
