// Shapes: N rows, K width, C classes.
#include "gallop/kernel/cuda/linear_cross_entropy.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "gallop/kernel/cross_entropy_rows.h"
#include "gallop/kernel/cuda/cross_entropy.h"

namespace gallop::kernel {

// In fp32, whatever the format of the products.
static void add_weight_gradient(const at::Tensor& logits_gradient, const at::Tensor& x,
                                const at::Tensor& sum_CK) {
  if (x.scalar_type() == at::kFloat) {
    at::Tensor sum = sum_CK;
    at::addmm_out(sum, sum, logits_gradient.t(), x);
  } else {
    sum_CK.add_(at::mm(logits_gradient.t(), x));
  }
}

LinearCrossEntropyResult linear_cross_entropy_on_gpu(CudaLauncher& launcher, const at::Tensor& x,
                                                     const at::Tensor& weight,
                                                     const at::Tensor& target,
                                                     const LinearCrossEntropyOptions& options) {
  const int64_t rows = x.size(0), classes = weight.size(0);
  const int64_t at_once = rows_at_once(rows, classes, options.most_logits);
  const auto fp32 = x.options().dtype(at::kFloat);
  LinearCrossEntropyResult result;
  if (options.wants_x) result.x = at::empty_like(x);
  if (options.wants_weight) result.weight = at::zeros(weight.sizes(), fp32);
  const at::Tensor all_logits = at::empty({at_once, classes}, x.options());
  const at::Tensor loss = at::zeros({}, fp32.dtype(at::kDouble)), one = at::ones({}, fp32);
  result.correct = at::zeros({}, fp32.dtype(at::kLong));
  for (int64_t begin = 0; begin < rows; begin += at_once) {
    const int64_t count = std::min(at_once, rows - begin);
    at::Tensor logits = all_logits.narrow(0, 0, count);
    const at::Tensor part_x = x.narrow(0, begin, count), part = target.narrow(0, begin, count);
    at::mm_out(logits, part_x, weight.t());
    const auto some = cross_entropy_on_gpu(launcher, logits, part, options.targets);
    loss.add_(some.loss);
    result.correct.add_(some.correct);
    if (!options.wants_x && !options.wants_weight) continue;
    const at::Tensor gradient =
        cross_entropy_backward_on_gpu(launcher, one, logits, part, some.rows, options.targets);
    if (options.wants_x) {
      at::Tensor part_dx = result.x.narrow(0, begin, count);
      at::mm_out(part_dx, gradient, weight);
    }
    if (options.wants_weight) add_weight_gradient(gradient, part_x, result.weight);
  }
  result.loss = loss.to(at::kFloat);
  return result;
}

}  // namespace gallop::kernel
