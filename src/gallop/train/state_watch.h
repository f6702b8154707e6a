#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gallop/tensor/named_tensor.h"

namespace gallop::train {

/// A checksum of the bits of tensors, in their order.
uint64_t checksum_of(const NamedTensors& tensors);

/// Compares the states of processes that share their steps. They have the same bits, unless the
/// memory or the arithmetic of one has failed.
class StateWatch {
 public:
  struct Comparison {
    bool is_equal = true;
    std::vector<size_t> odd_ranks{};  ///< Ranks whose state differs from that of the majority;
                                      ///< empty if there is no majority.
    /// If all are equal now, the ranks that had another state when this step was reached before;
    /// empty if all had, as a wrong gradient had reached them by then.
    std::vector<size_t> wrong_before{};
  };

  /// Compares the checksums of all processes after this step.
  Comparison compare(int64_t step, const std::vector<uint64_t>& checksums);
  /// The number of comparisons that failed.
  int64_t count() const { return count_; }

 private:
  std::map<int64_t, std::vector<uint64_t>> unequal_;  // By step.
  int64_t count_ = 0;
};

}  // namespace gallop::train
