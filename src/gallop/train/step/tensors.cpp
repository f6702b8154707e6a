#include "gallop/train/step/tensors.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

namespace gallop::train {

namespace {

// The order of StepOutputs::in_one(): these, then the count of targets, if it is computed on the
// device, and the number of correct predictions, if they are counted, or all shared sums.
enum Number : size_t { kLossNumber, kNormNumber, kSpikeNumber, kFurtherNumbers };

std::vector<double> on_host(const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu();
  const auto* const numbers = host.const_data_ptr<double>();
  return {numbers, numbers + host.numel()};
}

}  // namespace

at::Tensor StepInputs::value_of(ScheduledParameter parameter, const StepConfig& config) const {
  for (size_t i = 0; i < config.scheduled.size(); ++i) {
    if (config.scheduled[i] == parameter) return scheduled[i];
  }
  return {};
}

std::vector<at::Tensor> StepInputs::pack() const {
  std::vector<at::Tensor> tensors = tensors_in(batch);
  tensors.insert(tensors.end(), {lr, loss_weight, seed_and_step});
  tensors.insert(tensors.end(), scheduled.begin(), scheduled.end());
  if (shared.defined()) tensors.insert(tensors.end(), {own_seed_and_step, shared});
  return tensors;
}

StepInputs StepInputs::unpack(const std::vector<at::Tensor>& tensors, const StepInputs& like) {
  StepInputs inputs;
  auto next = tensors.begin();
  for (const auto& [name, tensor] : like.batch) inputs.batch.push_back({name, *next++});
  inputs.lr = *next++;
  inputs.loss_weight = *next++;
  inputs.seed_and_step = *next++;
  for (size_t i = 0; i < like.scheduled.size(); ++i) inputs.scheduled.push_back(*next++);
  if (!like.shared.defined()) return inputs;
  inputs.own_seed_and_step = *next++;
  inputs.shared = *next++;
  return inputs;
}

std::vector<std::string> StepInputs::names(const StepConfig& config) const {
  std::vector<std::string> all;
  for (const NamedTensor& field : batch) all.push_back(field.name);
  all.insert(all.end(), {"lr", "loss_weight", "seed_and_step"});
  for (const ScheduledParameter value : config.scheduled) all.emplace_back(name_of(value));
  if (shared.defined()) all.insert(all.end(), {"own_seed_and_step", "shared"});
  return all;
}

std::vector<at::Tensor> StepOutputs::pack() const {
  return {loss_sum, correct, gradient_norm, spike, shared_sums, target_count};
}

StepOutputs StepOutputs::unpack(const std::vector<at::Tensor>& tensors) {
  return {.loss_sum = tensors[0],
          .correct = tensors[1],
          .gradient_norm = tensors[2],
          .spike = tensors[3],
          .shared_sums = tensors[4],
          .target_count = tensors[5]};
}

at::Tensor StepOutputs::in_one() const {
  std::vector<at::Tensor> numbers = {loss_sum, gradient_norm.to(at::kDouble)};
  numbers.push_back(spike.defined() ? spike : at::zeros_like(loss_sum));
  if (target_count.defined()) numbers.push_back(target_count);
  if (correct.defined()) numbers.push_back(correct.to(at::kDouble));
  const at::Tensor all = at::stack(numbers);
  return shared_sums.defined() ? at::cat({all, shared_sums}) : all;
}

StepNumbers StepNumbers::of(const StepOutputs& outputs) {
  StepNumbers numbers{.loss_sum = outputs.loss_sum.item<double>(),
                      .gradient_norm = outputs.gradient_norm.item<double>()};
  if (outputs.spike.defined()) numbers.spike = outputs.spike.item<double>();
  if (outputs.target_count.defined()) numbers.target_count = outputs.target_count.item<double>();
  if (outputs.correct.defined()) numbers.correct = outputs.correct.item<int64_t>();
  if (outputs.shared_sums.defined()) numbers.shared_sums = on_host(outputs.shared_sums);
  return numbers;
}

StepNumbers StepNumbers::of(const std::vector<double>& numbers, bool counts_on_device,
                            bool is_shared) {
  StepNumbers all{.loss_sum = numbers[kLossNumber],
                  .gradient_norm = numbers[kNormNumber],
                  .spike = numbers[kSpikeNumber]};
  auto further = numbers.begin() + kFurtherNumbers;
  if (counts_on_device) all.target_count = *further++;
  if (is_shared) {
    all.shared_sums.assign(further, numbers.end());
  } else if (further != numbers.end()) {
    all.correct = static_cast<int64_t>(*further);
  }
  return all;
}

int64_t StepNumbers::most(bool counts_on_device, bool is_shared, size_t losses) {
  const size_t further = is_shared ? kFirstLoss + losses : 1;
  return static_cast<int64_t>(kFurtherNumbers + (counts_on_device ? 1 : 0) + further);
}

}  // namespace gallop::train
