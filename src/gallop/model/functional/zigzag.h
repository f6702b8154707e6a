#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/functional/tensor_parallel.h"

namespace gallop::model::functional {

/// Which tokens of a sequence each process has in ring attention: of 2 N chunks, as equal as
/// possible, rank r has chunks r and 2 N - 1 - r, in this order. In causal attention, where a token
/// attends to earlier ones alone, all processes then have the same number of pairs to compute. Of
/// sequences of less than 2 N tokens some chunks are empty.
class Zigzag {
 public:
  Zigzag(int64_t tokens, int processes);

  int processes() const { return processes_; }
  int64_t tokens() const { return bounds_.back(); }
  /// The two chunks of a rank.
  PartRange early(int rank) const { return chunk(rank); }
  PartRange late(int rank) const { return chunk(2 * processes_ - 1 - rank); }
  int64_t tokens_of(int rank) const { return early(rank).size() + late(rank).size(); }
  /// Positions of the tokens of a rank in the sequence, int64 [t].
  at::Tensor positions_of(int rank) const;

 private:
  PartRange chunk(int number) const;

  int processes_;
  std::vector<int64_t> bounds_;
};

}  // namespace gallop::model::functional
