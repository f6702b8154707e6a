#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gallop/tensor/named_tensor.h"

namespace gallop::train {

/// A checksum of the bits of tensors, in their order.
uint64_t checksum_of(const NamedTensors& tensors);

/// Holds the states of processes that share their steps against each other. They have the same
/// bits, unless the memory or the arithmetic of one has failed.
class StateWatch {
 public:
  struct Comparison {
    bool is_equal = true;
    std::vector<size_t> odd_ranks{};  ///< Whose state is not that of most; empty where none is.
    /// Where all are equal now, those that had another state when they came to this step before;
    /// empty where all had, as a wrong gradient had reached them by then.
    std::vector<size_t> wrong_before{};
  };

  /// `checksums`: of all processes after this step.
  Comparison compare(int64_t step, const std::vector<uint64_t>& checksums);
  /// How often they were not equal.
  int64_t count() const { return count_; }

 private:
  std::map<int64_t, std::vector<uint64_t>> unequal_;  // By their step.
  int64_t count_ = 0;
};

}  // namespace gallop::train
