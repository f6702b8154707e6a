#include "gallop/train/losses/members.h"

#include <ATen/ops/softmax.h>

#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

// Each row so many times, one after the other.
at::Tensor repeated(const at::Tensor& tensor, int64_t times) {
  std::vector<int64_t> sizes = tensor.sizes().vec();
  sizes.insert(sizes.begin() + 1, times);
  return tensor.unsqueeze(1).expand(sizes).flatten(0, 1);
}

}  // namespace

Losses losses_of(const Loss& loss, const model::Output& output, const NamedTensors& batch,
                 const Loss::Request& request) {
  if (output.members == 0) return loss.sum_and_correct(output, batch, request);
  NamedTensors rows;
  for (const auto& [name, tensor] : batch) {
    rows.push_back({name, repeated(tensor, output.members)});
  }
  Loss::Request without_correct = request;
  without_correct.count_correct = false;
  Losses losses = loss.sum_and_correct({.x = output.x.flatten(0, 1)}, rows, without_correct);
  losses.sum = losses.sum.div(static_cast<double>(output.members));
  const at::Tensor& target = field_of(batch, "target");
  if (request.count_correct && loss.traits().predicts_classes && !target.is_floating_point()) {
    const at::Tensor probabilities = at::softmax(output.x.detach().to(at::kFloat), -1).mean(1);
    losses.correct = probabilities.argmax(1).eq(label_rows(target, loss.traits().ignored)).sum();
  }
  return losses;
}

}  // namespace gallop::train
