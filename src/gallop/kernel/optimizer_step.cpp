#include "gallop/kernel/optimizer_step.h"

#include <algorithm>
#include <optional>

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/kernel/cuda/update.h"
#include "gallop/kernel/formats.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/update.h"

namespace gallop::kernel {

namespace {

using Optional = std::optional<at::Tensor>;
using Doubles = c10::ArrayRef<double>;

bool is_set(const at::Tensor& found_inf) {
  return found_inf.defined() && found_inf.item<float>() != 0;
}

// The result of norm() for meta tensors.
template <typename... Arguments>
at::Tensor norm_without_memory(Arguments...) {
  return at::empty({}, at::TensorOptions(c10::kDouble).device(c10::kMeta));
}

at::Tensor fp64(double number) { return at::scalar_tensor(number, c10::kDouble); }

const float* fp32_of(const at::Tensor& gradient) {
  return gradient.scalar_type() == c10::kFloat ? gradient.const_data_ptr<float>() : nullptr;
}
const Bf16* bf16_of(const at::Tensor& gradient) {
  if (gradient.scalar_type() != c10::kBFloat16) return nullptr;
  return static_cast<const Bf16*>(gradient.const_data_ptr());
}

// By parameter: its bf16 copy; undefined if it has none.
std::vector<at::Tensor> by_parameter(size_t parameters, at::TensorList bf16_copies,
                                     at::IntArrayRef has_bf16_copy) {
  std::vector<at::Tensor> all(parameters);
  for (size_t i = 0; i < bf16_copies.size(); ++i)
    all[static_cast<size_t>(has_bf16_copy[i])] = bf16_copies[i];
  return all;
}

Bf16* bf16_memory_of(const at::Tensor& bf16_copy) {
  return bf16_copy.defined() ? static_cast<Bf16*>(bf16_copy.mutable_data_ptr()) : nullptr;
}

// The operator's list arguments.
struct Bf16Copies {
  explicit Bf16Copies(const OptimizerStep& step) {
    for (size_t i = 0; i < step.bf16_copies.size(); ++i) {
      if (!step.bf16_copies[i].defined()) continue;
      tensors.push_back(step.bf16_copies[i]);
      of.push_back(static_cast<int64_t>(i));
    }
  }
  std::vector<at::Tensor> tensors;
  std::vector<int64_t> of;
};

// By parameter: its scales; `scales` lists the defined ones.
std::vector<at::Tensor> scales_by_parameter(const OptimizerStep& step, at::TensorList scales) {
  std::vector<at::Tensor> all(step.parameters.size());
  size_t next = 0;
  for (size_t i = 0; i < all.size() && next < scales.size(); ++i) {
    if (step.states[i].scalar_type() == c10::kByte) all[i] = scales[next++];
  }
  return all;
}

// The operator's argument: only defined scales, as states in uint8 identify their parameters.
std::vector<at::Tensor> defined(const std::vector<at::Tensor>& scales) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& one : scales) {
    if (one.defined()) all.push_back(one);
  }
  return all;
}

std::vector<ConstArray> arrays_of(at::TensorList tensors) {
  std::vector<ConstArray> arrays;
  arrays.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    arrays.push_back(
        {.data = fp32_of(tensor), .size = tensor.numel(), .bf16_data = bf16_of(tensor)});
  }
  return arrays;
}

at::Tensor norm_on_cpu(at::TensorList tensors) { return fp64(norm(arrays_of(tensors))); }

void sums_of_squares_on_cpu(const at::Tensor& sums, at::TensorList tensors, at::IntArrayRef first) {
  auto* const all = sums.mutable_data_ptr<double>();
  std::fill_n(all, sums.numel(), 0.0);
  const std::vector<double> own = sums_of_squares(arrays_of(tensors));
  auto next = own.begin();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t chunks = norm_chunks(tensors[i].numel());
    std::copy_n(next, chunks, all + first[i]);
    next += chunks;
  }
}

void sums_of_squares_on_meta(const at::Tensor&, at::TensorList, at::IntArrayRef) {}

at::Tensor norm_of_sums_on_cpu(const at::Tensor& sums) {
  return fp64(norm_of_sums({sums.const_data_ptr<double>(), static_cast<size_t>(sums.numel())}));
}

// Computes the factors of one parameter after the other, and counts its step.
class Factors {
 public:
  Factors(const UpdateRule& rule, const OptimizerStep& step)
      : rule_(rule),
        step_(step),
        lr_(step.lr.item<float>()),
        options_(step.options),
        counts_(step.steps.defined() ? step.steps.mutable_data_ptr<float>() : nullptr),
        running_(step.running.defined() ? step.running.mutable_data_ptr<double>() : nullptr) {
    for (size_t i = 0; i < step.scheduled.size(); ++i) {
      const double value = step.scheduled[i].item<double>();
      if (step.scheduled_options[i] == kWeightDecayOption) {
        weight_decay_ = value;
      } else {
        options_[static_cast<size_t>(step.scheduled_options[i])] = value;
      }
    }
  }

  void put(size_t i, UpdateTensor& tensor) {
    const int64_t index = step_.indices[i];
    double* const running = running_ == nullptr ? nullptr : running_ + index * rule_.running;
    const UpdateMoment<double> moment{
        .step = counts_ == nullptr ? 1 : static_cast<double>(counts_[index] += 1),
        .lr = step_.lr_factors.empty() ? lr_ : lr_ * step_.lr_factors[i],
        .weight_decay = weight_decay_of(i),
        .decays = step_.weight_decays[i] == 0 ? 0.0 : 1.0,
        .options = options_.data(),
        .running = running};
    // Usually the same for all parameters, and powers are slow.
    if (!is_that_before(moment)) {
      double next[kMostRunning];
      rule_.begin(moment, factors_, next);
      before_ = moment;
      std::copy(running, running + rule_.running, running_before_);
      std::copy(next, next + rule_.running, next_);
    }
    std::copy(next_, next_ + rule_.running, running);
    for (int f = 0; f < rule_.factors; ++f) tensor.factors[f] = static_cast<float>(factors_[f]);
    tensor.moment = moment;
  }

 private:
  double weight_decay_of(size_t i) const {
    const double own = step_.weight_decays[i];
    return own == kScheduledDecay ? weight_decay_ : own;
  }
  bool is_that_before(const UpdateMoment<double>& moment) const {
    return before_ && before_->step == moment.step && before_->lr == moment.lr &&
           before_->weight_decay == moment.weight_decay &&
           std::equal(moment.running, moment.running + rule_.running, running_before_);
  }

  const UpdateRule& rule_;
  const OptimizerStep& step_;
  double lr_, weight_decay_ = 0;
  std::vector<double> options_;  // With scheduled values in their places.
  float* counts_;
  double* running_;
  std::optional<UpdateMoment<double>> before_;
  double factors_[kMostFactors], running_before_[kMostRunning], next_[kMostRunning];
};

// How bf16 parameters are rounded, one after the other.
class RoundedParameters {
 public:
  explicit RoundedParameters(const OptimizerStep& step) : step_(step) {
    if (!step.draws.defined()) return;
    const auto* const numbers = step.draws.const_data_ptr<int64_t>();
    const auto seed = static_cast<uint64_t>(numbers[0]), number = static_cast<uint64_t>(numbers[1]);
    const auto key = Philox::key_of(seed, Purpose::kRounding);
    draw_ = {.key = {key[0], key[1]},
             .counter = {0, static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32)}};
  }

  void put(size_t i, UpdateTensor& tensor) {
    tensor.bf16_parameter = static_cast<Bf16*>(step_.parameters[i].mutable_data_ptr());
    if (!step_.compensations.empty()) {
      tensor.rounding = Rounding::kKahan;
      tensor.compensation = static_cast<Bf16*>(step_.compensations[next_++].mutable_data_ptr());
    } else if (step_.draws.defined()) {
      tensor.rounding = Rounding::kStochastic;
      tensor.draw = draw_;
      tensor.draw.counter[0] = static_cast<uint32_t>(step_.indices[i]);
    }
  }

 private:
  const OptimizerStep& step_;
  RoundingDraw draw_;
  size_t next_ = 0;
};

at::Tensor update_on_cpu(const OptimizerStep& step) {
  if (is_set(step.found_inf)) return norm_on_cpu(step.gradients);
  const UpdateRule& rule = update_rule(step.rule);
  const float factor = step.grad_scale.defined() ? 1 / step.grad_scale.item<float>() : 1;
  Factors factors(rule, step);
  RoundedParameters rounded(step);
  const size_t count = step.parameters.size();
  std::vector<UpdateTensor> tensors(count);
  for (size_t i = 0; i < count; ++i) {
    UpdateTensor& tensor = tensors[i];
    if (is_bf16(step.parameters[i])) {
      rounded.put(i, tensor);
    } else {
      tensor.parameter = step.parameters[i].mutable_data_ptr<float>();
    }
    tensor.gradient = fp32_of(step.gradients[i]);
    tensor.bf16_gradient = bf16_of(step.gradients[i]);
    for (size_t kind = 0; kind < static_cast<size_t>(rule.states); ++kind) {
      const at::Tensor& state = step.states[kind * count + i];
      if (!step.scales[i].defined()) {
        tensor.states[kind] = state.mutable_data_ptr<float>();
        continue;
      }
      tensor.codes[kind] = state.mutable_data_ptr<uint8_t>();
      tensor.scales[kind] = step.scales[i].mutable_data_ptr<float>() +
                            static_cast<int64_t>(kind) * step.scales[i].size(1);
    }
    tensor.bf16_copy = bf16_memory_of(step.bf16_copies[i]);
    tensor.size = step.parameters[i].numel();
    tensor.gradient_scale = factor;
    factors.put(i, tensor);
  }
  return fp64(update(rule, tensors));
}

CudaLauncher& launcher_of(const at::Tensor& tensor) {
  CudaLauncher* launcher = cuda_launcher_for(tensor.device());
  if (launcher == nullptr) throw InternalError("optimizer step: a GPU without our kernels");
  return *launcher;
}

at::Tensor norm_on_cuda(at::TensorList tensors) {
  return norm_on_gpu(launcher_of(tensors.front()), tensors);
}

at::Tensor update_on_cuda(const OptimizerStep& step) {
  return update_on_gpu(launcher_of(step.lr), step);
}

// The operator's arguments as a step.
template <at::Tensor (*kUpdate)(const OptimizerStep&)>
at::Tensor with_step(c10::string_view rule, at::TensorList parameters, at::TensorList gradients,
                     at::TensorList states, at::TensorList scales, const Optional& steps,
                     const Optional& running, at::IntArrayRef indices, Doubles weight_decays,
                     Doubles lr_factors, const at::Tensor& lr, const Optional& grad_scale,
                     const Optional& found_inf, Doubles options, at::TensorList scheduled,
                     at::IntArrayRef scheduled_options, at::TensorList compensations,
                     const Optional& draws, at::TensorList bf16_copies,
                     at::IntArrayRef has_bf16_copy) {
  OptimizerStep step{.rule = std::string(rule),
                     .options = options.vec(),
                     .parameters = parameters.vec(),
                     .gradients = gradients.vec(),
                     .states = states.vec(),
                     .weight_decays = weight_decays.vec(),
                     .scheduled = scheduled.vec(),
                     .scheduled_options = scheduled_options.vec(),
                     .lr_factors = lr_factors.vec(),
                     .indices = indices.vec(),
                     .steps = steps.value_or(at::Tensor()),
                     .running = running.value_or(at::Tensor()),
                     .lr = lr,
                     .grad_scale = grad_scale.value_or(at::Tensor()),
                     .found_inf = found_inf.value_or(at::Tensor()),
                     .bf16_copies = by_parameter(parameters.size(), bf16_copies, has_bf16_copy),
                     .compensations = compensations.vec(),
                     .draws = draws.value_or(at::Tensor())};
  step.scales = scales_by_parameter(step, scales);
  return kUpdate(step);
}

void check_rounding(const OptimizerStep& step) {
  size_t bf16 = 0;
  bool is_right = true;
  for (size_t i = 0; i < step.parameters.size(); ++i) {
    if (!is_bf16(step.parameters[i])) continue;
    is_right &= step.bf16_copies.empty() || !step.bf16_copies[i].defined();
    if (bf16 < step.compensations.size()) {
      const at::Tensor& kept = step.compensations[bf16];
      is_right &= is_bf16(kept) && kept.numel() == step.parameters[i].numel();
    }
    ++bf16;
  }
  is_right &=
      step.compensations.empty() || (step.compensations.size() == bf16 && !step.draws.defined());
  is_right &=
      !step.draws.defined() || (step.draws.scalar_type() == c10::kLong && step.draws.numel() == 2);
  if (!is_right)
    throw InternalError("optimizer step: bf16 parameters that this rounding does not support");
}

void check(const OptimizerStep& step) {
  const UpdateRule& rule = update_rule(step.rule);
  const size_t count = step.parameters.size(), states = count * static_cast<size_t>(rule.states);
  if (step.states.size() != states || step.gradients.size() != count ||
      step.options.size() != static_cast<size_t>(rule.options) ||
      step.running.defined() != (rule.running > 0) ||
      step.scheduled.size() != step.scheduled_options.size()) {
    throw InternalError("optimizer step: lists that do not fit the rule " + step.rule);
  }
  for (size_t i = 0; i < step.scales.size(); ++i) {
    if (!step.scales[i].defined()) continue;
    const int64_t blocks = (step.parameters[i].numel() + kStateBlock - 1) / kStateBlock;
    if (rule.signs_of_8_bits < 0 || step.scales.size() != count ||
        step.states[i].scalar_type() != c10::kByte ||
        step.scales[i].sizes() != at::IntArrayRef({rule.states, blocks})) {
      throw InternalError("optimizer step: states in 8 bits that do not fit the rule " + step.rule);
    }
  }
  check_rounding(step);
  for (const int64_t number : step.scheduled_options) {
    if (number >= kWeightDecayOption && number < rule.options) continue;
    throw InternalError("optimizer step: no such option of the rule " + step.rule);
  }
}

}  // namespace

at::Tensor update(const OptimizerStep& step) {
  static const Operator kUpdate(
      "update_(str rule, Tensor(a!)[] parameters, Tensor[] gradients, Tensor(b!)[] states, "
      "Tensor(f!)[] scales, Tensor(c!)? steps, Tensor(d!)? running, int[] indices, float[] "
      "weight_decays, float[] "
      "lr_factors, Tensor lr, Tensor? grad_scale, Tensor? found_inf, float[] options, Tensor[] "
      "scheduled, "
      "int[] scheduled_options, Tensor(g!)[] compensations, Tensor? draws, Tensor(e!)[] "
      "bf16_copies, "
      "int[] has_bf16_copy) -> Tensor norm",
      with_step<update_on_cpu>, norm_without_memory, with_step<update_on_cuda>);
  check(step);
  if (step.parameters.empty()) return fp64(0);  // The dispatcher could not select a device.
  const Bf16Copies bf16_copies(step);
  at::Tensor norm =
      kUpdate(step.rule, step.parameters, step.gradients, step.states, defined(step.scales),
              optional(step.steps), optional(step.running), step.indices, step.weight_decays,
              step.lr_factors, step.lr, optional(step.grad_scale), optional(step.found_inf),
              step.options, step.scheduled, step.scheduled_options, step.compensations,
              optional(step.draws), bf16_copies.tensors, bf16_copies.of);
  count_changes(step.parameters);
  return norm;
}

at::Tensor norm(at::TensorList tensors) {
  if (tensors.empty()) return fp64(0);  // As in update().
  static const Operator kNorm("norm(Tensor[] tensors) -> Tensor", norm_on_cpu, norm_without_memory,
                              norm_on_cuda);
  return kNorm(tensors);
}

void sums_of_squares(const at::Tensor& sums, at::TensorList tensors, at::IntArrayRef first) {
  static const Operator kSums(
      "sums_of_squares_(Tensor(a!) sums, Tensor[] tensors, int[] first) -> ()",
      sums_of_squares_on_cpu, sums_of_squares_on_meta);
  kSums(sums, tensors, first);
  count_changes(sums);
}

at::Tensor norm_of_sums(const at::Tensor& sums) {
  static const Operator kNorm("norm_of_sums(Tensor sums) -> Tensor", norm_of_sums_on_cpu,
                              norm_without_memory<const at::Tensor&>);
  return kNorm(sums);
}

}  // namespace gallop::kernel
