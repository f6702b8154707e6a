#include "gallop/kernel/cuda/update.h"

#include <algorithm>
#include <bit>
#include <string>

#include <ATen/ops/empty.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/kernel/cuda/update_slots.h"
#include "gallop/kernel/update_table.h"

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

// Its parts are gallop_update_NAME, gallop_finish_NAME, and with a trust ratio gallop_measure_NAME
// and gallop_join_NAME.
constexpr const char* kNorm = "norm";

/// One update of all tensors, or their norm.
class Update {
 public:
  /// `rule` is null for the norm.
  Update(CudaLauncher& launcher, const UpdateRule* rule, c10::Device device)
      : launcher_(launcher),
        rule_(rule),
        device_(device),
        states_(rule == nullptr ? 0 : static_cast<size_t>(rule->states)),
        fields_(UpdateField::kFirstState + states_ +
                (rule != nullptr && rule->signs_of_8_bits >= 0 ? 1 : 0)),
        head_(kCudaSlots) {}

  void set(int slot, const at::Tensor& tensor) { set(slot, address(tensor)); }
  void set(int slot, double number) { set(slot, bits(number)); }
  void set(int slot, uint64_t number) { head_[static_cast<size_t>(slot)] = number; }

  /// A tensor without elements has nothing to be done but to be counted.
  void add(const at::Tensor& gradient, const OptimizerStep* step = nullptr, size_t i = 0) {
    const auto format = gradient.scalar_type();
    if (format != at::kFloat && format != at::kBFloat16) {
      throw InternalError("update on a GPU: gradients that it does not take");
    }
    Fields fields(fields_);
    fields[UpdateField::kGradient] = address(gradient);
    fields[UpdateField::kSize] = bits(gradient.numel());
    fields[UpdateField::kIndexAndFormats] = format == at::kBFloat16 ? 1 : 0;
    if (step != nullptr) {
      fields[UpdateField::kParameter] = address(step->parameters[i]);
      fields[UpdateField::kBf16Copy] =
          step->bf16_copies.empty() ? 0 : address(step->bf16_copies[i]);
      if (step->parameters[i].scalar_type() == at::kBFloat16) {
        fields[UpdateField::kIndexAndFormats] |= 2;
        if (!step->compensations.empty()) {
          fields[UpdateField::kBf16Copy] = address(step->compensations[compensated_++]);
        }
      }
      fields[UpdateField::kIndexAndFormats] |= bits(step->indices[i]) << 2;
      fields[UpdateField::kWeightDecay] = bits(step->weight_decays[i]);
      fields[UpdateField::kLrFactor] = bits(step->lr_factors.empty() ? 1 : step->lr_factors[i]);
      for (size_t k = 0; k < states_; ++k) {
        fields[UpdateField::kFirstState + k] =
            address(step->states[k * step->parameters.size() + i]);
      }
      if (!step->scales.empty() && step->scales[i].defined()) {
        fields[UpdateField::kFirstState + states_] = address(step->scales[i]);
      }
    }
    tensors_.push_back(std::move(fields));
    blocks_.push_back(blocks_of(gradient));
  }

  at::Tensor run() {
    int64_t all_blocks = 0;
    for (const int64_t blocks : blocks_) all_blocks += blocks;
    const auto options = at::TensorOptions(at::kDouble).device(device_);
    const at::Tensor sums = at::empty({std::max<int64_t>(all_blocks, 1)}, options);
    at::Tensor norm = at::empty({}, options);
    at::Tensor measures, measured;
    if (has_ratio()) {
      measures = at::empty({2 * std::max<int64_t>(all_blocks, 1)}, options);
      measured = at::empty({2 * static_cast<int64_t>(tensors_.size())}, options);
    }
    set(UpdateSlot::kAllSums, sums);
    set(UpdateSlot::kAllBlocks, bits(all_blocks));
    const size_t room = (kCudaSlots - UpdateSlot::kFirstTensor) / fields_;
    int64_t before = 0;
    size_t begin = 0;
    do {
      const size_t end = std::min(begin + room, tensors_.size());
      std::vector<uint64_t> slots = head_;
      slots[UpdateSlot::kSums] = address(sums) + static_cast<uint64_t>(before) * sizeof(double);
      if (has_ratio()) {
        slots[UpdateSlot::kMeasures] =
            address(measures) + static_cast<uint64_t>(before) * 2 * sizeof(double);
        slots[UpdateSlot::kMeasured] = address(measured) + begin * 2 * sizeof(double);
      }
      slots[UpdateSlot::kTensors] = end - begin;
      if (end == tensors_.size()) slots[UpdateSlot::kNorm] = address(norm);
      const int64_t blocks = place(begin, end, slots);
      start(blocks, static_cast<int64_t>(end - begin), slots);
      before += blocks;
      begin = end;
    } while (begin < tensors_.size());
    return norm;
  }

 private:
  using Fields = std::vector<uint64_t>;

  bool has_ratio() const { return rule_ != nullptr && rule_->measures != Measures::kNothing; }

  // Returns their blocks.
  int64_t place(size_t begin, size_t end, std::vector<uint64_t>& slots) {
    int64_t blocks = 0;
    for (size_t i = begin; i < end; ++i) {
      tensors_[i][UpdateField::kFirstBlock] = bits(blocks);
      blocks += blocks_[i];
      std::copy(tensors_[i].begin(), tensors_[i].end(),
                slots.begin() + UpdateSlot::kFirstTensor +
                    static_cast<std::ptrdiff_t>((i - begin) * fields_));
    }
    return blocks;
  }

  void start(int64_t blocks, int64_t tensors, const std::vector<uint64_t>& slots) {
    if (blocks > 0 && has_ratio()) {
      launch("measure", blocks, slots);
      launch("join", tensors, slots);
    }
    if (blocks > 0) launch("update", blocks, slots);
    launch("finish", 1, slots);
  }

  void launch(const char* part, int64_t blocks, const std::vector<uint64_t>& slots) {
    const std::string rule = rule_ == nullptr ? kNorm : rule_->name;
    launcher_.launch({.text = kUpdateText,
                      .part = rule,
                      .kernel = std::string("gallop_") + part + "_" + rule,
                      .blocks = static_cast<uint32_t>(blocks),
                      .device = device_,
                      .slots = slots});
  }

  CudaLauncher& launcher_;
  const UpdateRule* rule_;
  c10::Device device_;
  size_t states_, fields_;  // Numbers of states and fields per tensor.
  std::vector<uint64_t> head_;
  std::vector<Fields> tensors_;
  std::vector<int64_t> blocks_;  // Blocks of each tensor.
  size_t compensated_ = 0;
};

at::Tensor as_float(const at::Tensor& number) {
  return number.defined() ? number.to(at::kFloat) : number;
}

}  // namespace

at::Tensor update_on_gpu(CudaLauncher& launcher, const OptimizerStep& step) {
  // The kernels read both as float. A norm in fp64 makes found_inf fp64, too.
  const at::Tensor grad_scale = as_float(step.grad_scale), found_inf = as_float(step.found_inf);
  Update update(launcher, &update_rule(step.rule), step.lr.device());
  update.set(UpdateSlot::kLr, step.lr);
  update.set(UpdateSlot::kGradScale, grad_scale);
  update.set(UpdateSlot::kFoundInf, found_inf);
  update.set(UpdateSlot::kSteps, step.steps);
  update.set(UpdateSlot::kRunning, step.running);
  update.set(UpdateSlot::kDraws, step.draws);
  update.set(UpdateSlot::kPurpose, uint64_t{Philox::key_of(0, Purpose::kRounding)[1]});
  for (size_t i = 0; i < step.options.size(); ++i) {
    update.set(UpdateSlot::kFirstOption + static_cast<int>(i), step.options[i]);
  }
  uint64_t is_scheduled = 0;
  for (size_t i = 0; i < step.scheduled.size(); ++i) {
    const int64_t number = step.scheduled_options[i];
    if (step.scheduled[i].scalar_type() != at::kDouble) {
      throw InternalError("update on a GPU: an option that varies and is not in fp64");
    }
    if (number == kWeightDecayOption) {
      update.set(UpdateSlot::kScheduledDecay, step.scheduled[i]);
    } else {
      update.set(UpdateSlot::kFirstOption + static_cast<int>(number), step.scheduled[i]);
      is_scheduled |= uint64_t{1} << number;
    }
  }
  update.set(UpdateSlot::kScheduled, is_scheduled);
  for (size_t i = 0; i < step.gradients.size(); ++i) update.add(step.gradients[i], &step, i);
  return update.run();
}

at::Tensor norm_on_gpu(CudaLauncher& launcher, at::TensorList tensors) {
  Update update(launcher, nullptr, tensors.front().device());
  for (const at::Tensor& tensor : tensors) update.add(tensor);
  return update.run();
}

std::vector<UpdateKernel> update_kernels() {
  std::vector<UpdateKernel> kernels = {{"gallop_update_norm", "norm_of", kNorm},
                                       {"gallop_finish_norm", "finish_by<NoRule>", kNorm}};
  for (const UpdateRule& rule : update_rules()) {
    std::vector<const char*> parts = {"update", "finish"};
    if (rule.measures != Measures::kNothing) parts.insert(parts.end(), {"measure", "join"});
    for (const std::string part : parts) {
      kernels.push_back({"gallop_" + part + "_" + rule.name,
                         (part == "join" ? "join_measures" : part) + "_by<gallop::kernel::RuleOf<" +
                             std::to_string(rule.number) + ", gallop::kernel::UpdateRules>::Type>",
                         rule.name});
    }
  }
  return kernels;
}

}  // namespace gallop::kernel
