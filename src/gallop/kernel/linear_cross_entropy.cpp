// Shapes: N rows, K width, C classes.
#include "gallop/kernel/linear_cross_entropy.h"

#include <algorithm>
#include <tuple>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/arrays.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/cross_entropy_rows.h"
#include "gallop/kernel/cuda/linear_cross_entropy.h"
#include "gallop/kernel/operator.h"

namespace gallop::kernel {

namespace {

constexpr int64_t kGrain = 1 << 16;  // Elements that one thread processes at a time.

// Classes whose weight gradients stay in the caches between their GEMM and their accumulation.
constexpr int64_t kClasses = 2048;

// sum_CK = products if `first`, else sum_CK += products.
void add_products(const at::Tensor& products, const at::Tensor& sum_CK, bool first) {
  const auto* from = data_of<const Bf16>(products);
  auto* to = data_of<float>(sum_CK);
  at::parallel_for(0, products.numel(), kGrain, [&](int64_t begin, int64_t end) {
    const auto& kernels = best_kernels<ArrayKernels>();
    (first ? kernels.widen : kernels.add)(from + begin, to + begin, end - begin);
  });
}

void add_weight_gradient(const at::Tensor& logits_gradient, const at::Tensor& x,
                         const at::Tensor& sum_CK, bool first) {
  if (x.scalar_type() == at::kFloat) {
    at::Tensor sum = sum_CK;
    if (first) {
      at::mm_out(sum, logits_gradient.t(), x);
    } else {
      at::addmm_out(sum, sum, logits_gradient.t(), x);
    }
    return;
  }
  const int64_t classes = sum_CK.size(0), at_once = std::min(classes, kClasses);
  const at::Tensor all = at::empty({at_once, x.size(1)}, x.options());
  for (int64_t begin = 0; begin < classes; begin += at_once) {
    const int64_t count = std::min(at_once, classes - begin);
    at::Tensor products = all.narrow(0, 0, count);
    at::mm_out(products, logits_gradient.narrow(1, begin, count).t(), x);
    add_products(products, sum_CK.narrow(0, begin, count), first);
  }
}

LinearCrossEntropyResult compute(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& target,
                                 const LinearCrossEntropyOptions& options) {
  const int64_t rows = x.size(0), classes = weight.size(0);
  const int64_t at_once = rows_at_once(rows, classes, options.most_logits);
  LinearCrossEntropyResult result;
  if (options.wants_x) result.x = at::empty_like(x);
  if (options.wants_weight)
    result.weight = at::empty(weight.sizes(), weight.options().dtype(at::kFloat));
  const at::Tensor all_logits = at::empty({at_once, classes}, x.options());
  const at::Tensor saved = at::empty({at_once, 2}, x.options().dtype(at::kFloat));
  float* const kept = saved.mutable_data_ptr<float>();
  LossSum sum;
  for (int64_t begin = 0; begin < rows; begin += at_once) {
    const int64_t count = std::min(at_once, rows - begin);
    at::Tensor logits = all_logits.narrow(0, 0, count);
    const at::Tensor part_x = x.narrow(0, begin, count), part = target.narrow(0, begin, count);
    at::mm_out(logits, part_x, weight.t());
    const LossSum some = cross_entropy_rows(logits, part, options.targets, kept);
    sum.loss += some.loss;
    sum.correct += some.correct;
    if (!options.wants_x && !options.wants_weight) continue;
    cross_entropy_gradient_rows(logits, part, kept, options.targets, /*scale=*/1, logits);
    if (options.wants_x) {
      at::Tensor part_dx = result.x.narrow(0, begin, count);
      at::mm_out(part_dx, logits, weight);
    }
    if (options.wants_weight)
      add_weight_gradient(logits, part_x, result.weight, /*first=*/begin == 0);
  }
  result.loss = at::full({}, sum.loss_in_fp32(), at::kFloat);
  result.correct = at::full({}, sum.correct, at::kLong);
  return result;
}

bool is_taken(const at::Tensor& x) {
  if (!x.defined() || !x.is_cuda()) return is_plain(x);
  const at::ScalarType type = x.scalar_type();
  return x.is_contiguous() && (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf) &&
         cuda_launcher_for(x.device()) != nullptr;
}

using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

Four forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& target,
             int64_t ignored, double label_smoothing, bool wants_x, bool wants_weight,
             int64_t most_logits) {
  if (!takes_linear_cross_entropy(x, weight, target)) {
    throw InternalError("linear_cross_entropy: unsupported tensors");
  }
  const LinearCrossEntropyOptions options{
      .targets = {.ignored = ignored, .label_smoothing = label_smoothing},
      .wants_x = wants_x,
      .wants_weight = wants_weight,
      .most_logits = most_logits};
  const at::Tensor same_format = weight.to(x.scalar_type());
  LinearCrossEntropyResult result;
  if (x.is_cuda()) {
    result = linear_cross_entropy_on_gpu(*cuda_launcher_for(x.device()), x, same_format, target,
                                         options);
  } else {
    require_classes(target, weight.size(0), ignored);
    result = compute(x, same_format, target, options);
  }
  return {result.loss, result.correct, result.x, result.weight};
}

void scale(const at::Tensor& numbers, float factor) {
  if (!numbers.defined() || factor == 1) return;
  const auto& kernels = best_kernels<ArrayKernels>();
  const bool fp32 = numbers.scalar_type() == at::kFloat;
  at::parallel_for(0, numbers.numel(), kGrain, [&](int64_t begin, int64_t end) {
    if (fp32) return kernels.scale_fp32(data_of<float>(numbers) + begin, factor, end - begin);
    kernels.scale_bf16(data_of<Bf16>(numbers) + begin, factor, end - begin);
  });
}

void backward_on_cpu(const at::Tensor& gradient, const std::optional<at::Tensor>& x,
                     const std::optional<at::Tensor>& weight) {
  if (gradient.numel() != 1 || !is_plain(gradient) || gradient.scalar_type() != at::kFloat) {
    throw InternalError("linear_cross_entropy_backward: an unsupported gradient");
  }
  const float factor = *gradient.const_data_ptr<float>();
  if (x) scale(*x, factor);
  if (weight) scale(*weight, factor);
}

void backward_on_cuda(const at::Tensor& gradient, const std::optional<at::Tensor>& x,
                      const std::optional<at::Tensor>& weight) {
  if (gradient.numel() != 1 || !gradient.is_cuda() || gradient.scalar_type() != at::kFloat) {
    throw InternalError("linear_cross_entropy_backward: an unsupported gradient");
  }
  if (x) x->mul_(gradient);
  if (weight) weight->mul_(gradient);
}

Four forward_without_memory(const at::Tensor& x, const at::Tensor& weight, const at::Tensor&,
                            int64_t, double, bool wants_x, bool wants_weight, int64_t) {
  const auto fp32 = x.options().dtype(at::kFloat);
  return {at::empty({}, fp32), at::empty({}, fp32.dtype(at::kLong)),
          wants_x ? at::empty_like(x) : at::Tensor(),
          wants_weight ? at::empty(weight.sizes(), fp32) : at::Tensor()};
}

void backward_without_memory(const at::Tensor&, const std::optional<at::Tensor>&,
                             const std::optional<at::Tensor>&) {}

}  // namespace

int64_t rows_at_once(int64_t rows, int64_t classes, int64_t most_logits) {
  const int64_t most = std::max<int64_t>(most_logits / classes, 1);
  const int64_t parts = (rows + most - 1) / most;
  return (rows + parts - 1) / parts;
}

bool takes_linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& target) {
  return is_taken(x) && x.dim() == 2 && is_taken(weight) && weight.dim() == 2 &&
         (weight.scalar_type() == at::kFloat || weight.scalar_type() == x.scalar_type()) &&
         weight.device() == x.device() && weight.size(1) == x.size(1) && target.defined() &&
         target.scalar_type() == at::kLong && target.device() == x.device() &&
         target.is_contiguous() && target.dim() == 1 && target.size(0) == x.size(0);
}

LinearCrossEntropyResult linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                              const at::Tensor& target,
                                              const LinearCrossEntropyOptions& options) {
  static const Operator kForward(
      "linear_cross_entropy(Tensor x, Tensor weight, Tensor target, int ignored, float "
      "label_smoothing, bool wants_x, bool wants_weight, int most_logits) -> (Tensor loss, Tensor "
      "correct, Tensor dx, Tensor dweight)",
      forward, forward_without_memory, forward);
  auto [loss, correct, dx, dweight] =
      kForward(x, weight, target, options.targets.ignored, options.targets.label_smoothing,
               options.wants_x, options.wants_weight, options.most_logits);
  return {.loss = loss, .correct = correct, .x = dx, .weight = dweight};
}

void linear_cross_entropy_backward(const at::Tensor& gradient,
                                   const LinearCrossEntropyResult& result) {
  static const Operator kBackward(
      "linear_cross_entropy_backward(Tensor gradient, Tensor(a!)? dx, Tensor(b!)? dweight) -> ()",
      backward_on_cpu, backward_without_memory, backward_on_cuda);
  const auto optional = [](const at::Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  };
  kBackward(gradient, optional(result.x), optional(result.weight));
}

}  // namespace gallop::kernel
