#include "gallop/model/functional/experts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/kernel/grouped_linear.h"
#include "gallop/model/functional/autocast.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor tokens_of(const at::Tensor& copies, int64_t k) {
  return k == 1 ? copies : copies.floor_divide(k);
}

at::Tensor wide(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

// y [T k, C] as [T, k, C].
at::Tensor by_token(const at::Tensor& y, const at::Tensor& rows) {
  return y.index_select(0, rows.flatten()).view({rows.size(0), rows.size(1), y.size(1)});
}

// Its gradient is a gather and a sum in the order of experts, not a sum by index.
struct Dispatch : torch::autograd::Function<Dispatch> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& copies,
                            const at::Tensor& rows) {
    context->save_for_backward({rows});
    return x.index_select(0, tokens_of(copies, rows.size(1)));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("dispatch");
    const at::Tensor rows = context->get_saved_variables()[0];
    const at::Tensor& dy = gradients[0];
    return {wide(by_token(dy, rows)).sum(1).to(dy.scalar_type()), {}, {}};
  }
};

struct ExpertLinear : torch::autograd::Function<ExpertLinear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& ranges) {
    context->save_for_backward({x, weight, ranges});
    return kernel::grouped_linear(x, weight, ranges);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("expert_linear");
    const auto saved = context->get_saved_variables();
    const at::Tensor dy = gradients[0].contiguous();
    variable_list all(3);
    if (context->needs_input_grad(0)) {
      all[0] = kernel::grouped_linear_dgrad(dy, saved[1], saved[2]);
    }
    if (context->needs_input_grad(1)) {
      all[1] = kernel::grouped_linear_wgrad(dy, saved[0], saved[2]);
    }
    return all;
  }
};

struct Combine : torch::autograd::Function<Combine> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& y,
                            const at::Tensor& weights, const at::Tensor& copies,
                            const at::Tensor& rows) {
    context->save_for_backward({y, weights, copies, rows});
    return wide(by_token(y, rows)).mul(weights.unsqueeze(-1)).sum(1).to(y.scalar_type());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("combine");
    const auto saved = context->get_saved_variables();
    const at::Tensor &y = saved[0], &weights = saved[1], &copies = saved[2], &rows = saved[3];
    const at::Tensor dx = wide(gradients[0]);
    variable_list all(4);
    if (context->needs_input_grad(0)) {
      all[0] = dx.index_select(0, tokens_of(copies, rows.size(1)))
                   .mul(weights.flatten().index_select(0, copies).unsqueeze(-1))
                   .to(y.scalar_type());
    }
    if (context->needs_input_grad(1)) {
      all[1] = wide(by_token(y, rows)).mul(dx.unsqueeze(1)).sum(-1).to(weights.scalar_type());
    }
    return all;
  }
};

}  // namespace

ExpertOrder order_by_expert(const at::Tensor& experts, int64_t count, int64_t capacity) {
  const auto [sorted, copies] = at::sort(experts.flatten(), /*stable=*/true, /*dim=*/0,
                                         /*descending=*/false);
  const at::Tensor places = at::arange(copies.numel(), copies.options());
  const at::Tensor ends = at::searchsorted(sorted, at::arange(count, copies.options()),
                                           /*out_int32=*/false, /*right=*/true);
  const at::Tensor begins = at::cat({at::zeros({1}, ends.options()), ends.slice(0, 0, count - 1)});
  const at::Tensor computed = capacity > 0 ? at::minimum(ends, begins.add(capacity)) : ends;
  return {.copies = copies,
          .rows = at::zeros(copies.sizes(), copies.options())
                      .scatter(0, copies, places)
                      .view(experts.sizes()),
          .ranges = at::stack({begins, computed}, 1),
          .counts = ends.sub(begins)};
}

at::Tensor computed_copies(const ExpertOrder& order, const at::Tensor& experts) {
  const at::Tensor ends = order.ranges.select(1, 1).index_select(0, experts.flatten());
  return order.rows.lt(ends.view(experts.sizes()));
}

at::Tensor dispatch(const at::Tensor& x, const ExpertOrder& order) {
  return Dispatch::apply(x, order.copies, order.rows);
}

at::Tensor expert_linear(const at::Tensor& x, const at::Tensor& weight, const ExpertOrder& order) {
  const auto format = product_format(x);
  return ExpertLinear::apply(x.to(format), weight.to(format), order.ranges);
}

at::Tensor combine(const at::Tensor& y, const at::Tensor& weights, const ExpertOrder& order) {
  return Combine::apply(y, weights, order.copies, order.rows);
}

}  // namespace gallop::model::functional
