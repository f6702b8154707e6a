// Step 8: a layer whose inputs are divided, and the two together. Z = Y B, where each process has
// some of the columns of Y and the same rows of B: each product is a part of the sum Z. If Y comes
// from step 7, it need not be gathered: what lies between, such as an activation, is elementwise.
// A block of two layers thus takes one all-reduce forward, for Z, and one backward, for dX
// (Megatron-LM; Shoeybi et al., 2019):
//
//   X -> f -> X A -> gelu -> ( ) B -> g -> Z     f: copies forward, all-reduces backward
//        |    own columns     own rows |         g: all-reduces forward, copies backward
//
// Autograd sees f and g as operators (common.h). A bias of the second layer is added after g:
// before it, it would be added once by each process.
#include <ATen/ops/gelu.h>

#include "common.h"

int main(int, char** argv) {
  return run_step(argv[0], {2, 4}, [](const ProcessGroup& group) {
    const at::Tensor a = weights({8, 32}, 1), b = weights({32, 8}, 2), bias_a = weights({32}, 3),
                     bias_b = weights({8}, 4);
    const at::Tensor x = random({6, 8}, 5).requires_grad_(), y = random({6, 8}, 6);
    const at::Tensor z = at::matmul(at::gelu(at::matmul(x, a) + bias_a), b) + bias_b;
    (z - y).square().mean().backward();

    const at::Tensor own_a = part_of(a, 1, group).requires_grad_(),
                     own_bias_a = part_of(bias_a, 0, group).requires_grad_(),
                     own_b = part_of(b, 0, group).requires_grad_(),
                     whole_bias_b = bias_b.detach().clone().requires_grad_(),
                     own_x = x.detach().clone().requires_grad_();
    const at::Tensor hidden =
        at::gelu(at::matmul(copy_to_region(own_x, group), own_a) + own_bias_a);
    const at::Tensor sum = reduce_from_region(at::matmul(hidden, own_b), group) + whole_bias_b;
    (sum - y).square().mean().backward();

    if (group.rank() == 0) {
      fmt::print("each process has {} of {} parameters that are divided\n",
                 own_a.numel() + own_bias_a.numel() + own_b.numel(),
                 a.numel() + bias_a.numel() + b.numel());
    }
    Comparison comparison;
    comparison.add("output", sum, z, 1e-12);
    comparison.add("gradient of X", own_x.grad(), x.grad(), 1e-12);
    comparison.add("gradients of parts", own_a.grad(), part_of(a.grad(), 1, group), 1e-12);
    comparison.add("gradients of parts", own_bias_a.grad(), part_of(bias_a.grad(), 0, group),
                   1e-12);
    comparison.add("gradients of parts", own_b.grad(), part_of(b.grad(), 0, group), 1e-12);
    // Every process has computed this one from the whole Z.
    comparison.add("gradient of the bias", whole_bias_b.grad(), bias_b.grad(), 1e-12);
    return comparison.finish(group);
  });
}
