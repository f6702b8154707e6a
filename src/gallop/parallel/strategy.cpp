#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

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
