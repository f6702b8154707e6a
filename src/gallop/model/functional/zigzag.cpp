#include "gallop/model/functional/zigzag.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

namespace gallop::model::functional {

Zigzag::Zigzag(int64_t tokens, int processes)
    : processes_(processes), bounds_(part_bounds(tokens, 2 * processes)) {}

at::Tensor Zigzag::positions_of(int rank) const {
  const auto in = [](const PartRange& chunk) {
    return at::arange(chunk.begin, chunk.end, at::TensorOptions(at::kLong));
  };
  return at::cat({in(early(rank)), in(late(rank))});
}

PartRange Zigzag::chunk(int number) const {
  const auto i = static_cast<size_t>(number);
  return {bounds_[i], bounds_[i + 1]};
}

}  // namespace gallop::model::functional
