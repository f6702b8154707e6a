#include "gallop/kernel/cuda/update.h"

#include <algorithm>
#include <bit>

#include <ATen/ops/empty.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cuda/update_slots.h"

namespace gallop::kernel {

namespace {

uint64_t bits(double number) { return std::bit_cast<uint64_t>(number); }
uint64_t bits(int64_t number) { return static_cast<uint64_t>(number); }

uint64_t address(const at::Tensor& tensor) {
  return tensor.defined() ? reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) : 0;
}

int64_t blocks_of(const at::Tensor& tensor) {
  return (tensor.numel() + kUpdateBlock - 1) / kUpdateBlock;
}

/// One update of all tensors.
class Update {
 public:
  Update(CudaLauncher& launcher, const char* kernel, c10::Device device)
      : launcher_(launcher), kernel_(kernel), device_(device), head_(kCudaSlots) {}

  void set(int slot, const at::Tensor& tensor) { set(slot, address(tensor)); }
  void set(int slot, double number) { set(slot, bits(number)); }
  void set(int slot, uint64_t number) { head_[static_cast<size_t>(slot)] = number; }

  /// A tensor without elements has nothing to be done but to be counted.
  void add(const at::Tensor& gradient, const OptimizerStep* step, size_t i, const at::Tensor& state,
           const at::Tensor& second_state) {
    const auto format = gradient.scalar_type();
    if (format != at::kFloat && format != at::kBFloat16) {
      throw InternalError("update on a GPU: gradients that it does not take");
    }
    Fields fields(UpdateField::kFields);
    fields[UpdateField::kParameter] = step == nullptr ? 0 : address(step->parameters[i]);
    fields[UpdateField::kGradient] = address(gradient);
    fields[UpdateField::kIsBf16] = format == at::kBFloat16 ? 1 : 0;
    fields[UpdateField::kState] = address(state);
    fields[UpdateField::kSecondState] = address(second_state);
    const bool has_shadow = step != nullptr && !step->shadows.empty();
    fields[UpdateField::kShadow] = has_shadow ? address(step->shadows[i]) : 0;
    fields[UpdateField::kSize] = bits(gradient.numel());
    fields[UpdateField::kStepIndex] = step == nullptr ? 0 : bits(step->indices[i]);
    fields[UpdateField::kWeightDecay] = step == nullptr ? 0 : bits(step->weight_decays[i]);
    tensors_.push_back(std::move(fields));
    blocks_.push_back(blocks_of(gradient));
  }

  at::Tensor run() {
    int64_t all_blocks = 0;
    for (const int64_t blocks : blocks_) all_blocks += blocks;
    const auto options = at::TensorOptions(at::kDouble).device(device_);
    const at::Tensor sums = at::empty({std::max<int64_t>(all_blocks, 1)}, options);
    at::Tensor norm = at::empty({}, options);
    set(UpdateSlot::kAllSums, sums);
    set(UpdateSlot::kAllBlocks, bits(all_blocks));
    int64_t before = 0;
    size_t begin = 0;
    do {
      const size_t end = std::min(begin + kUpdateTensors, tensors_.size());
      std::vector<uint64_t> slots = head_;
      slots[UpdateSlot::kSums] = address(sums) + static_cast<uint64_t>(before) * sizeof(double);
      slots[UpdateSlot::kTensors] = end - begin;
      if (end == tensors_.size()) slots[UpdateSlot::kNorm] = address(norm);
      int64_t blocks = 0;
      for (size_t i = begin; i < end; ++i) {
        tensors_[i][UpdateField::kFirstBlock] = bits(blocks);
        blocks += blocks_[i];
        std::copy(tensors_[i].begin(), tensors_[i].end(),
                  slots.begin() + UpdateSlot::kFirstTensor +
                      static_cast<std::ptrdiff_t>((i - begin) * UpdateField::kFields));
      }
      if (blocks > 0) launch(kernel_, blocks, slots);
      launch("gallop_finish_update", 1, slots);
      before += blocks;
      begin = end;
    } while (begin < tensors_.size());
    return norm;
  }

 private:
  using Fields = std::vector<uint64_t>;

  void launch(const char* kernel, int64_t blocks, const std::vector<uint64_t>& slots) {
    launcher_.launch({.text = kUpdateText,
                      .kernel = kernel,
                      .blocks = static_cast<uint32_t>(blocks),
                      .device = device_,
                      .slots = slots});
  }

  CudaLauncher& launcher_;
  const char* kernel_;
  c10::Device device_;
  std::vector<uint64_t> head_;
  std::vector<Fields> tensors_;
  std::vector<int64_t> blocks_;  // Of each tensor.
};

Update update_of(CudaLauncher& launcher, const char* kernel, const OptimizerStep& step) {
  Update update(launcher, kernel, step.lr.device());
  update.set(UpdateSlot::kLr, step.lr);
  update.set(UpdateSlot::kDivisor, step.divisor);
  update.set(UpdateSlot::kSkip, step.skip);
  update.set(UpdateSlot::kSteps, step.steps);
  return update;
}

}  // namespace

at::Tensor adamw_on_gpu(CudaLauncher& launcher, const OptimizerStep& step, at::TensorList exp_avgs,
                        at::TensorList exp_avg_sqs, const AdamwOptions& options) {
  Update update = update_of(launcher, "gallop_adamw", step);
  update.set(UpdateSlot::kFirstNumber, options.beta1);
  update.set(UpdateSlot::kFirstNumber + 1, options.beta2);
  update.set(UpdateSlot::kFirstNumber + 2, options.eps);
  for (size_t i = 0; i < step.gradients.size(); ++i) {
    update.add(step.gradients[i], &step, i, exp_avgs[i], exp_avg_sqs[i]);
  }
  return update.run();
}

at::Tensor sgd_on_gpu(CudaLauncher& launcher, const OptimizerStep& step,
                      at::TensorList momentum_buffers, const SgdOptions& options) {
  Update update = update_of(launcher, "gallop_sgd", step);
  update.set(UpdateSlot::kFirstNumber, options.momentum);
  update.set(UpdateSlot::kFirstNumber + 1, options.dampening);
  update.set(UpdateSlot::kNesterov, uint64_t{options.nesterov});
  for (size_t i = 0; i < step.gradients.size(); ++i) {
    update.add(step.gradients[i], &step, i,
               momentum_buffers.empty() ? at::Tensor() : momentum_buffers[i], {});
  }
  return update.run();
}

at::Tensor norm_on_gpu(CudaLauncher& launcher, at::TensorList tensors) {
  Update update(launcher, "gallop_norm", tensors.front().device());
  for (const at::Tensor& tensor : tensors) update.add(tensor, nullptr, 0, {}, {});
  return update.run();
}

}  // namespace gallop::kernel
