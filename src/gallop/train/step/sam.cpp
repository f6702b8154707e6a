#include "gallop/train/step/sam.h"

#include <ATen/core/grad_mode.h>

namespace gallop::train {

SamPerturbation::SamPerturbation(const NamedTensors& parameters, const NamedTensors& buffers,
                                 const at::Tensor& norm, double distance) {
  constexpr double kLeastNorm = 1e-12;
  const at::NoGradGuard no_grad;
  const at::Tensor share = norm.add(kLeastNorm).reciprocal().mul(distance).to(at::kFloat);
  for (const auto& [name, tensor] : parameters) {
    if (!tensor.grad().defined()) continue;
    before_.keep({{name, tensor}});
    tensor.add_(tensor.grad().mul(share));
  }
  before_.keep(buffers);
}

}  // namespace gallop::train
