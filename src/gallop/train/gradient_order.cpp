#include "gallop/train/gradient_order.h"

#include "gallop/parallel/gradient_hooks.h"
#include "gallop/train/losses/members.h"
#include "gallop/train/tensor_snapshot.h"

namespace gallop::train {

std::vector<std::string> gradient_order(model::Model& model, const NamedTensors& batch,
                                        precision::Precision precision, const Loss& loss) {
  NamedTensors trained;
  for (const auto& parameter : model.parameters()) {
    if (parameter.tensor.requires_grad()) trained.push_back(parameter);
  }
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : trained) tensors.push_back(tensor);
  std::vector<std::string> order;
  // A gradient is dropped at once, so that no process ever has all of them.
  const parallel::GradientHooks hooks(tensors, [&](size_t parameter) {
    order.push_back(trained[parameter].name);
    tensors[parameter].mutable_grad().reset();
  });
  const TensorSnapshot statistics(model.buffers());
  model.set_training(true);
  at::Tensor sum;
  {
    const precision::AutocastGuard autocast(precision, batch.front().tensor.device().type());
    sum = losses_of(loss, model.forward_to_head(batch), batch).sum;
  }
  sum.backward();
  statistics.restore();
  return order;
}

}  // namespace gallop::train
