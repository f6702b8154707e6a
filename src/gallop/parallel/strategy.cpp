#include "gallop/parallel/strategy.h"

#include "gallop/base/error.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

std::unique_ptr<optim::Optimizer> Strategy::make_optimizer(const NamedTensors& /*buffers*/,
                                                           const MakeOptimizer& /*make*/) const {
  throw InternalError("strategy: each process updates all parameters");
}

std::optional<std::vector<PendingCollective>> Strategy::collective_calls(int64_t /*passes*/) const {
  return {};
}

void Strategy::note_unused(const NamedTensors& parameters,
                           const std::function<bool(const at::Tensor&)>& is_moved) {
  if (has_noted_unused_) return;
  std::vector<std::string> without;
  for (const auto& [name, tensor] : parameters) {
    if (!tensor.requires_grad()) continue;
    if (tensor.grad().defined() || is_moved(tensor)) {
      has_noted_unused_ = true;
    } else {
      without.push_back(name);
    }
  }
  // A pass without samples produces no gradients at all.
  if (has_noted_unused_) unused_ = std::move(without);
}

}  // namespace gallop::parallel
