#include "gallop/kernel/cross_entropy.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/cross_entropy.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/cross_entropy_rows.h"
#include "gallop/kernel/cuda/cross_entropy.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"
#include "gallop/kernel/row_blocks.h"

namespace gallop::kernel {

namespace {

bool has_indices(const at::Tensor& target) { return target.scalar_type() == at::kLong; }

CrossEntropyTargets targets_of(const at::Tensor& target, const CrossEntropyOptions& options) {
  const auto as = [&](auto* type, at::ScalarType format) {
    using Number = std::remove_pointer_t<decltype(type)>;
    return target.scalar_type() == format ? data_of<const Number>(target) : nullptr;
  };
  return {.indices = as(static_cast<int64_t*>(nullptr), at::kLong),
          .shares_fp32 = as(static_cast<float*>(nullptr), at::kFloat),
          .shares_bf16 = as(static_cast<Bf16*>(nullptr), at::kBFloat16),
          .ignored = options.ignored,
          .smoothing = static_cast<float>(options.label_smoothing)};
}

CrossEntropyTargets from(CrossEntropyTargets targets, int64_t row, int64_t columns) {
  if (targets.indices != nullptr) targets.indices += row;
  if (targets.shares_fp32 != nullptr) targets.shares_fp32 += row * columns;
  if (targets.shares_bf16 != nullptr) targets.shares_bf16 += row * columns;
  return targets;
}

template <typename Number>
void forward(CrossEntropyRows<Number> part, int64_t begin, int64_t end) {
  part.logits += begin * part.columns;
  part.targets = from(part.targets, begin, part.columns);
  part.saved += begin;
  part.losses += begin;
  if (part.correct != nullptr) part.correct += begin;
  part.rows = end - begin;
  const auto& kernels = best_kernels<CrossEntropyKernels>();
  if constexpr (std::is_same_v<Number, float>) {
    kernels.forward_fp32(part);
  } else {
    kernels.forward_bf16(part);
  }
}

template <typename Number>
void backward(CrossEntropyGradientRows<Number> part, int64_t begin, int64_t end) {
  part.logits += begin * part.columns;
  part.targets = from(part.targets, begin, part.columns);
  part.saved += begin;
  part.gradient += begin * part.columns;
  part.rows = end - begin;
  const auto& kernels = best_kernels<CrossEntropyKernels>();
  if constexpr (std::is_same_v<Number, float>) {
    kernels.backward_fp32(part);
  } else {
    kernels.backward_bf16(part);
  }
}

template <typename Number>
LossSum forward(const at::Tensor& logits, const at::Tensor& target,
                const CrossEntropyOptions& options, float* saved) {
  const int64_t rows = logits.size(0), columns = logits.size(1);
  std::vector<double> losses(static_cast<size_t>(rows));
  std::vector<int32_t> correct(has_indices(target) ? losses.size() : 0);
  const CrossEntropyRows<Number> all{.logits = data_of<const Number>(logits),
                                     .targets = targets_of(target, options),
                                     .saved = reinterpret_cast<CrossEntropyRow*>(saved),
                                     .losses = losses.data(),
                                     .correct = correct.empty() ? nullptr : correct.data(),
                                     .rows = rows,
                                     .columns = columns};
  at::parallel_for(0, rows, rows_of_grain(columns),
                   [&](int64_t begin, int64_t end) { forward(all, begin, end); });
  LossSum sum;
  for (const double loss : losses) sum.loss += loss;
  for (const int32_t one : correct) sum.correct += one;
  return sum;
}

template <typename Number>
void backward(const at::Tensor& logits, const at::Tensor& target, const float* saved,
              const CrossEntropyOptions& options, float scale, const at::Tensor& gradient) {
  const int64_t rows = logits.size(0), columns = logits.size(1);
  const CrossEntropyGradientRows<Number> all{
      .logits = data_of<const Number>(logits),
      .targets = targets_of(target, options),
      .saved = reinterpret_cast<const CrossEntropyRow*>(saved),
      .gradient = data_of<Number>(gradient),
      .scale = scale,
      .rows = rows,
      .columns = columns};
  at::parallel_for(0, rows, rows_of_grain(columns),
                   [&](int64_t begin, int64_t end) { backward(all, begin, end); });
}

}  // namespace

static bool is_taken_on_gpu(const at::Tensor& logits, const at::Tensor& target) {
  const auto is_one_of = [](const at::Tensor& tensor, std::initializer_list<at::ScalarType> list) {
    return std::find(list.begin(), list.end(), tensor.scalar_type()) != list.end();
  };
  const bool classes = has_indices(target) && target.dim() == 1;
  const bool shares = is_one_of(target, {at::kFloat, at::kBFloat16}) && target.dim() == 2;
  return is_one_of(logits, {at::kFloat, at::kBFloat16, at::kHalf}) && logits.dim() == 2 &&
         logits.numel() > 0 && logits.is_contiguous() && target.is_contiguous() &&
         target.device() == logits.device() && (classes || shares) &&
         (classes ? target.size(0) == logits.size(0) : target.sizes() == logits.sizes()) &&
         cuda_launcher_for(logits.device()) != nullptr;
}

bool takes_cross_entropy(const at::Tensor& logits, const at::Tensor& target) {
  if (logits.defined() && target.defined() && logits.device().is_cuda()) {
    return is_taken_on_gpu(logits, target);
  }
  if (!is_plain(logits) || logits.dim() != 2 || !target.defined()) return false;
  if (!has_indices(target)) return is_plain(target) && target.sizes() == logits.sizes();
  return target.is_cpu() && target.is_contiguous() && target.dim() == 1 &&
         target.size(0) == logits.size(0);
}

void require_classes(const at::Tensor& target, int64_t classes, int64_t ignored) {
  const int64_t* indices = target.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < target.size(0); ++row) {
    const int64_t index = indices[row];
    if ((index >= 0 && index < classes) || index == ignored) continue;
    throw DataError(
        fmt::format("target {} in row {} is out of range: there are {} classes, from 0 on, and {} "
                    "marks targets that do not count; give the model as many outputs as the data "
                    "have classes",
                    index, row, classes, ignored));
  }
}

LossSum cross_entropy_rows(const at::Tensor& logits, const at::Tensor& target,
                           const CrossEntropyOptions& options, float* saved) {
  return logits.scalar_type() == at::kFloat ? forward<float>(logits, target, options, saved)
                                            : forward<Bf16>(logits, target, options, saved);
}

void cross_entropy_gradient_rows(const at::Tensor& logits, const at::Tensor& target,
                                 const float* saved, const CrossEntropyOptions& options,
                                 float scale, const at::Tensor& gradient) {
  return logits.scalar_type() == at::kFloat
             ? backward<float>(logits, target, saved, options, scale, gradient)
             : backward<Bf16>(logits, target, saved, options, scale, gradient);
}

namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Three forward_on_cpu(const at::Tensor& logits, const at::Tensor& target, int64_t ignored,
                     double label_smoothing) {
  if (!takes_cross_entropy(logits, target)) {
    throw InternalError("cross_entropy: unsupported tensors");
  }
  if (has_indices(target)) require_classes(target, logits.size(1), ignored);
  at::Tensor rows = at::empty({logits.size(0), 2}, logits.options().dtype(at::kFloat));
  const LossSum sum =
      cross_entropy_rows(logits, target, {.ignored = ignored, .label_smoothing = label_smoothing},
                         rows.mutable_data_ptr<float>());
  return {at::full({}, sum.loss_in_fp32(), at::kFloat),
          has_indices(target) ? at::full({}, sum.correct, at::kLong) : at::Tensor(), rows};
}

at::Tensor backward_on_cpu(const at::Tensor& gradient, const at::Tensor& logits,
                           const at::Tensor& target, const at::Tensor& rows, int64_t ignored,
                           double label_smoothing) {
  if (!takes_cross_entropy(logits, target) || gradient.numel() != 1 || !is_plain(gradient) ||
      gradient.scalar_type() != at::kFloat) {
    throw InternalError("cross_entropy_backward: unsupported tensors");
  }
  at::Tensor result = at::empty_like(logits);
  cross_entropy_gradient_rows(logits, target, rows.const_data_ptr<float>(),
                              {.ignored = ignored, .label_smoothing = label_smoothing},
                              *gradient.const_data_ptr<float>(), result);
  return result;
}

Three forward_on_cuda(const at::Tensor& logits, const at::Tensor& target, int64_t ignored,
                      double label_smoothing) {
  if (!takes_cross_entropy(logits, target)) {
    throw InternalError("cross_entropy: unsupported tensors");
  }
  const auto result =
      cross_entropy_on_gpu(*cuda_launcher_for(logits.device()), logits, target,
                           {.ignored = ignored, .label_smoothing = label_smoothing});
  return {result.loss, result.correct, result.rows};
}

at::Tensor backward_on_cuda(const at::Tensor& gradient, const at::Tensor& logits,
                            const at::Tensor& target, const at::Tensor& rows, int64_t ignored,
                            double label_smoothing) {
  if (!takes_cross_entropy(logits, target) || gradient.numel() != 1 ||
      gradient.device() != logits.device() || gradient.scalar_type() != at::kFloat) {
    throw InternalError("cross_entropy_backward: unsupported tensors");
  }
  return cross_entropy_backward_on_gpu(*cuda_launcher_for(logits.device()), gradient, logits,
                                       target, rows,
                                       {.ignored = ignored, .label_smoothing = label_smoothing});
}

Three forward_without_memory(const at::Tensor& logits, const at::Tensor& target, int64_t, double) {
  const auto options = logits.options().dtype(at::kFloat);
  return {at::empty({}, options),
          has_indices(target) ? at::empty({}, options.dtype(at::kLong)) : at::Tensor(),
          at::empty({logits.size(0), 2}, options)};
}

at::Tensor backward_without_memory(const at::Tensor&, const at::Tensor& logits, const at::Tensor&,
                                   const at::Tensor&, int64_t, double) {
  return at::empty_like(logits);
}

const auto& forward_operator() {
  static const Operator kForward(
      "cross_entropy(Tensor logits, Tensor target, int ignored, float label_smoothing) -> (Tensor "
      "loss, Tensor correct, Tensor rows)",
      forward_on_cpu, forward_without_memory, forward_on_cuda);
  return kForward;
}

const auto& backward_operator() {
  static const Operator kBackward(
      "cross_entropy_backward(Tensor gradient, Tensor logits, Tensor target, Tensor rows, int "
      "ignored, float label_smoothing) -> Tensor",
      backward_on_cpu, backward_without_memory, backward_on_cuda);
  return kBackward;
}

}  // namespace

c10::OperatorHandle cross_entropy_operator() { return forward_operator().handle(); }
c10::OperatorHandle cross_entropy_backward_operator() { return backward_operator().handle(); }

CrossEntropyResult cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                                 const CrossEntropyOptions& options) {
  auto [loss, correct, rows] =
      forward_operator()(logits, target, options.ignored, options.label_smoothing);
  return {.loss = loss, .correct = correct, .rows = rows};
}

at::Tensor cross_entropy_backward(const at::Tensor& gradient, const at::Tensor& logits,
                                  const at::Tensor& target, const at::Tensor& rows,
                                  const CrossEntropyOptions& options) {
  return backward_operator()(gradient, logits, target, rows, options.ignored,
                             options.label_smoothing);
}

}  // namespace gallop::kernel
