// Shapes: M rows, C classes of this process, P processes.
#include "gallop/model/functional/vocabulary_cross_entropy.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/model/context_parallel.h"
#include "gallop/model/functional/first_order.h"
#include "gallop/model/functional/tensor_parallel.h"
#include "gallop/model/tensor_parallel.h"

namespace gallop::model::functional {

namespace {

using kernel::CrossEntropyOptions;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor widened(const at::Tensor& logits) {
  return logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
}

/// The place of each label among the classes of this process, 0 for those of others.
struct OwnLabels {
  at::Tensor is_here_M, index_M;
};

OwnLabels own_labels(const at::Tensor& target_M, int64_t begin, int64_t classes) {
  const at::Tensor index = target_M.sub(begin);
  const at::Tensor is_here = index.ge(0).logical_and(index.lt(classes));
  return {.is_here_M = is_here, .index_M = index.mul(is_here)};
}

/// What a process knows of each row. fp64 represents indices, and fp32 sums need no care.
enum Known : int64_t { kMax, kBest, kExpSum, kOfLabel, kSum, kKnown };

at::Tensor known_of(const at::Tensor& wide_MC, const OwnLabels& own, int64_t begin) {
  const auto [max_M, best_M] = wide_MC.max(1);
  const at::Tensor shifted_MC = wide_MC.sub(max_M.unsqueeze(1));
  // Not by a product with is_here_M, as the logit at index 0 may be infinite.
  const at::Tensor found_M = wide_MC.gather(1, own.index_M.unsqueeze(1)).squeeze(1);
  const at::Tensor of_label_M = at::where(own.is_here_M, found_M, at::zeros_like(found_M));
  return at::stack({max_M.to(at::kDouble), best_M.add(begin).to(at::kDouble),
                    shifted_MC.exp().sum(1).to(at::kDouble), of_label_M.to(at::kDouble),
                    wide_MC.sum(1, /*keepdim=*/false, at::kDouble)});
}

at::Tensor known_of_all(const at::Tensor& known, const TensorGroup& group) {
  const at::Tensor all = at::empty({group.size() * known.numel()}, known.options());
  all.narrow(0, group.rank() * known.numel(), known.numel()).copy_(known.view({-1}));
  group.all_gather(all, std::vector<int64_t>(static_cast<size_t>(group.size()), known.numel()));
  return all.view({group.size(), kKnown, known.size(1)});
}

struct VocabularyCrossEntropy : torch::autograd::Function<VocabularyCrossEntropy> {
  static variable_list forward(AutogradContext* context, const at::Tensor& logits_MC,
                               const at::Tensor& target_M, const CrossEntropyOptions& options,
                               int64_t classes, const TensorGroup& group) {
    const auto bounds = part_bounds(classes, group.size());
    const int64_t begin = bounds[static_cast<size_t>(group.rank())];
    const at::Tensor wide_MC = widened(logits_MC);
    const OwnLabels own = own_labels(target_M, begin, logits_MC.size(1));
    const at::Tensor all = known_of_all(known_of(wide_MC, own, begin), group);
    const at::Tensor max_PM = all.select(1, kMax), max_M = max_PM.amax(0);
    const at::Tensor log_sum_M =
        all.select(1, kExpSum).mul(max_PM.sub(max_M).exp()).sum(0).log().add(max_M);
    const double smoothing = options.label_smoothing;
    at::Tensor losses_M = log_sum_M.sub(all.select(1, kOfLabel).sum(0), 1 - smoothing);
    if (smoothing > 0) {
      losses_M = losses_M.sub(all.select(1, kSum).sum(0), smoothing / static_cast<double>(classes));
    }
    const at::Tensor counts_M = target_M.ne(options.ignored);
    // As by kernels on GPUs; a check would wait for the device.
    const at::Tensor is_class_M = target_M.ge(0).logical_and(target_M.lt(classes));
    losses_M =
        losses_M.masked_fill(is_class_M.logical_not(), std::numeric_limits<double>::quiet_NaN());
    // The first of the largest.
    const at::Tensor best_M =
        at::where(max_PM.eq(max_M), all.select(1, kBest),
                  at::scalar_tensor(std::numeric_limits<double>::infinity(), all.options()))
            .amin(0);
    const at::Tensor correct = best_M.eq(target_M).sum();
    context->save_for_backward({logits_MC, target_M, log_sum_M});
    context->saved_data["ignored"] = options.ignored;
    context->saved_data["smoothing"] = smoothing;
    context->saved_data["classes"] = classes;
    context->saved_data["begin"] = begin;
    context->mark_non_differentiable({correct});
    const at::Tensor loss = at::where(counts_M, losses_M, at::zeros_like(losses_M)).sum();
    return {loss.to(wide_MC.scalar_type()), correct};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("vocabulary_parallel_cross_entropy");
    const auto saved = context->get_saved_variables();
    const at::Tensor &logits_MC = saved[0], &target_M = saved[1];
    const at::Tensor wide_MC = widened(logits_MC);
    const double smoothing = context->saved_data["smoothing"].toDouble();
    const auto classes = static_cast<double>(context->saved_data["classes"].toInt());
    const OwnLabels own =
        own_labels(target_M, context->saved_data["begin"].toInt(), logits_MC.size(1));
    const auto type = wide_MC.scalar_type();
    at::Tensor gradient_MC = wide_MC.sub(saved[2].to(type).unsqueeze(1)).exp_();
    if (smoothing > 0) gradient_MC.sub_(smoothing / classes);
    gradient_MC.scatter_add_(1, own.index_M.unsqueeze(1),
                             own.is_here_M.to(type).mul(smoothing - 1).unsqueeze(1));
    const at::Tensor counts_M = target_M.ne(context->saved_data["ignored"].toInt());
    gradient_MC.mul_(counts_M.to(type).mul(gradients[0].to(type)).unsqueeze(1));
    return {gradient_MC.to(logits_MC.scalar_type()), {}, {}, {}, {}};
  }
};

}  // namespace

LossSum vocabulary_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                                          const LossOptions& options, int64_t classes,
                                          const TensorGroup& group) {
  const auto outputs = VocabularyCrossEntropy::apply(
      logits.reshape({-1, logits.size(-1)}), target.reshape(-1), options.targets, classes, group);
  return {.loss = outputs[0], .correct = options.count_correct ? outputs[1] : at::Tensor()};
}

}  // namespace gallop::model::functional
