// Step 10: sequence parallelism (Korthikanti et al., 2022). Between the blocks of steps 8 and 9,
// norms and residuals are computed alike in all processes, each of which holds all activations
// there. They need no other token: so each process keeps some of the tokens. The all-reduce of g
// becomes a reduce-scatter, after which each process has the sums of its tokens, and f an
// all-gather of the tokens; backward, each becomes the other. An all-reduce is a reduce-scatter and
// an all-gather, so the same bytes are sent.
//
// The weights of the norms stay whole, but each process sees its tokens only: their gradients are
// parts of a sum, for which the processes need one all-reduce in a step.
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>

#include "common.h"

// Tokens are the first dimension.
at::Tensor all_gather(const at::Tensor& tensor, const ProcessGroup& group) {
  const at::Tensor all = at::empty({group.size() * tensor.size(0), tensor.size(1)}, at::kDouble);
  group.all_gather(all, tensor);
  return all;
}

at::Tensor reduce_scatter(const at::Tensor& tensor, const ProcessGroup& group) {
  const at::Tensor own = at::empty({tensor.size(0) / group.size(), tensor.size(1)}, at::kDouble);
  group.reduce_scatter(own, tensor);
  return own;
}

at::Tensor gather_from_sequence(const at::Tensor& x, const ProcessGroup& group) {
  return region(x, group, all_gather, reduce_scatter);
}

at::Tensor reduce_scatter_to_sequence(const at::Tensor& x, const ProcessGroup& group) {
  return region(x, group, reduce_scatter, all_gather);
}

int main(int, char** argv) {
  return run_step(argv[0], {2, 4}, [](const ProcessGroup& group) {
    constexpr int64_t kTokens = 8, kWidth = 16;
    const at::Tensor scale = weights({kWidth}, 1), a = weights({kWidth, 4 * kWidth}, 2),
                     b = weights({4 * kWidth, kWidth}, 3),
                     x = random({kTokens, kWidth}, 4).requires_grad_();
    const auto norm = [](const at::Tensor& tokens, const at::Tensor& weight) {
      return at::layer_norm(tokens, {kWidth}, weight);
    };
    const at::Tensor y = x + at::matmul(at::gelu(at::matmul(norm(x, scale), a)), b);
    y.square().mean().backward();

    const at::Tensor own_x = part_of(x, 0, group).requires_grad_(),
                     own_a = part_of(a, 1, group).requires_grad_(),
                     own_b = part_of(b, 0, group).requires_grad_(),
                     whole_scale = scale.detach().clone().requires_grad_();
    const at::Tensor tokens = gather_from_sequence(norm(own_x, whole_scale), group);
    const at::Tensor part = at::matmul(at::gelu(at::matmul(tokens, own_a)), own_b);
    const at::Tensor own_y = own_x + reduce_scatter_to_sequence(part, group);
    (own_y.square().sum() / static_cast<double>(x.numel())).backward();
    group.all_reduce(whole_scale.grad());

    if (group.rank() == 0) {
      fmt::print("between the blocks, each process has {} of {} tokens\n", own_x.size(0), kTokens);
    }
    Comparison comparison;
    comparison.add("output", own_y, part_of(y, 0, group), 1e-12);
    comparison.add("gradient of X", own_x.grad(), part_of(x.grad(), 0, group), 1e-12);
    comparison.add("gradients of parts", own_a.grad(), part_of(a.grad(), 1, group), 1e-12);
    comparison.add("gradients of parts", own_b.grad(), part_of(b.grad(), 0, group), 1e-12);
    comparison.add("gradient of the norm", whole_scale.grad(), scale.grad(), 1e-12);
    return comparison.finish(group);
  });
}
