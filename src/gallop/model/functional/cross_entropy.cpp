#include "gallop/model/functional/cross_entropy.h"

#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/base/error.h"
#include "gallop/kernel/isa.h"
#include "gallop/kernel/linear_cross_entropy.h"
#include "gallop/model/context_parallel.h"
#include "gallop/model/functional/autocast.h"
#include "gallop/model/functional/first_order.h"
#include "gallop/model/functional/linear.h"
#include "gallop/model/functional/tensor_parallel.h"
#include "gallop/model/functional/vocabulary_cross_entropy.h"
#include "gallop/model/tensor_parallel.h"

namespace gallop::model::functional {

namespace {

using kernel::CrossEntropyOptions;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor as_rows(const at::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

struct CrossEntropyFunction : torch::autograd::Function<CrossEntropyFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& logits,
                               const at::Tensor& target, const CrossEntropyOptions& options) {
    const auto result = kernel::cross_entropy(logits, target, options);
    context->save_for_backward({logits, target, result.rows});
    context->saved_data["ignored"] = options.ignored;
    context->saved_data["label_smoothing"] = options.label_smoothing;
    if (!result.correct.defined()) return {result.loss};
    context->mark_non_differentiable({result.correct});
    return {result.loss, result.correct};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("cross_entropy");
    const auto saved = context->get_saved_variables();
    const CrossEntropyOptions options{
        .ignored = context->saved_data["ignored"].toInt(),
        .label_smoothing = context->saved_data["label_smoothing"].toDouble()};
    return {kernel::cross_entropy_backward(gradients[0], saved[0], saved[1], saved[2], options),
            {},
            {}};
  }
};

struct LinearCrossEntropyFunction : torch::autograd::Function<LinearCrossEntropyFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const at::Tensor& weight, const at::Tensor& target,
                               const CrossEntropyOptions& options, bool recorded) {
    const auto result =
        kernel::linear_cross_entropy(x, weight, target,
                                     {.targets = options,
                                      .wants_x = recorded && x.requires_grad(),
                                      .wants_weight = recorded && weight.requires_grad()});
    context->saved_data["dx"] = result.x;
    context->saved_data["dweight"] = result.weight;
    context->saved_data["format"] = static_cast<int64_t>(weight.scalar_type());
    context->mark_non_differentiable({result.correct});
    return {result.loss, result.correct};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("linear_cross_entropy");
    auto& data = context->saved_data;
    if (data.count("dx") == 0) {
      throw UsageError(
          "linear_cross_entropy: a second backward through one forward, whose gradients were "
          "handed over by the first; run the forward pass again");
    }
    const auto taken = [&](const char* name) {
      auto tensor = data[name].isTensor() ? data[name].toTensor() : at::Tensor();
      data.erase(name);
      return tensor;
    };
    const kernel::LinearCrossEntropyResult result{
        .loss = {}, .correct = {}, .x = taken("dx"), .weight = taken("dweight")};
    kernel::linear_cross_entropy_backward(gradients[0], result);
    const auto format = static_cast<at::ScalarType>(data["format"].toInt());
    return {
        result.x, result.weight.defined() ? result.weight.to(format) : result.weight, {}, {}, {}};
  }
};

LossSum by_library(const at::Tensor& logits, const at::Tensor& target, const LossOptions& options) {
  const auto wide = logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
  const bool shares = target.is_floating_point();
  LossSum sum{.loss = at::cross_entropy_loss(wide, shares ? target.to(wide.scalar_type()) : target,
                                             {}, at::Reduction::Sum, options.targets.ignored,
                                             options.targets.label_smoothing),
              .correct = {}};
  if (options.count_correct && !shares) {
    sum.correct = at::eq(logits.detach().argmax(1), target).sum();
  }
  return sum;
}

// Each process computes the loss of its tokens.
LossSum sum_of_tokens(const Output& output, const at::Tensor& target, const LossOptions& options) {
  const ContextParallel& context = *output.context;
  const LossSum own = cross_entropy(Output{.x = output.x, .weight = output.weight},
                                    context.own_tokens(target, 1), options);
  LossSum all{.loss = reduce_from_tensor_parallel_region(own.loss, context.group()), .correct = {}};
  if (own.correct.defined()) {
    all.correct = own.correct.to(at::kDouble);
    context.group().all_reduce(all.correct);
    all.correct = all.correct.to(own.correct.scalar_type());
  }
  return all;
}

bool is_large(const Output& output) {
  // Below this size, all logits stay in the caches on their way to the loss.
  constexpr int64_t kNumbers = int64_t{1} << 22;
  const auto& x = output.x;
  return x.numel() / x.size(-1) * output.weight.size(0) > kNumbers;
}

}  // namespace

LossSum cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                      const LossOptions& options) {
  const auto rows = as_rows(logits);
  const auto wanted = target.is_floating_point() ? as_rows(target) : target.reshape(-1);
  if (!kernel::kernels_enabled() || wanted.requires_grad())
    return by_library(rows, wanted, options);
  const auto plain_wanted = wanted.contiguous();
  auto plain_rows = rows.contiguous();
  // The CPU kernel does not support fp16. The gradient is cast back.
  if (plain_rows.is_cpu() && plain_rows.scalar_type() == at::kHalf) {
    plain_rows = plain_rows.to(at::kFloat);
  }
  if (!kernel::takes_cross_entropy(plain_rows, plain_wanted)) {
    return by_library(rows, wanted, options);
  }
  const auto outputs = CrossEntropyFunction::apply(plain_rows, plain_wanted, options.targets);
  return {.loss = outputs[0], .correct = outputs.size() > 1 ? outputs[1] : at::Tensor()};
}

LossSum cross_entropy(const Output& output, const at::Tensor& target, const LossOptions& options) {
  if (output.context) return sum_of_tokens(output, target, options);
  if (output.part.parallel && !target.is_floating_point()) {
    const at::Tensor logits =
        output.weight.defined() ? functional::linear(output.x, output.weight, {}) : output.x;
    return vocabulary_parallel_cross_entropy(logits, target, options, output.part.classes,
                                             output.part.parallel->group());
  }
  if (!output.weight.defined()) return cross_entropy(output.logits(), target, options);
  if (kernel::kernels_enabled() && !output.part.parallel && is_large(output)) {
    const auto x = as_rows(output.x).to(product_format(output.x)).contiguous();
    const auto wanted = target.reshape(-1).contiguous();
    if (kernel::takes_linear_cross_entropy(x, output.weight, wanted)) {
      const auto outputs = LinearCrossEntropyFunction::apply(
          x, output.weight, wanted, options.targets, at::GradMode::is_enabled());
      return {.loss = outputs[0], .correct = outputs[1]};
    }
  }
  return cross_entropy(output.logits(), target, options);
}

}  // namespace gallop::model::functional
