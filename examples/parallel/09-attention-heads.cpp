// Step 9: attention. Heads do not depend on each other, so each process computes some of them: the
// projections to queries, keys and values are divided by outputs (step 7), the projection of the
// result by inputs (step 8), and the layer takes one all-reduce forward and one backward.
//
// A matrix of all three projections has the columns of queries, then those of keys, then those of
// values. It must be cut within each of them: equal parts of the columns would give one process the
// queries of all heads, and no values.
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/triu.h>

#include "common.h"

constexpr int64_t kTokens = 6, kWidth = 16, kHeads = 4, kHeadWidth = kWidth / kHeads;

// x: [tokens, width]; projections: [width, 3, heads, head width]; the result: [tokens, heads * head
// width].
at::Tensor attention(const at::Tensor& x, const at::Tensor& projections) {
  const int64_t heads = projections.size(2);
  const at::Tensor qkv = at::matmul(x, projections.reshape({kWidth, -1}))
                             .reshape({kTokens, 3, heads, kHeadWidth})
                             .permute({1, 2, 0, 3});  // [3, heads, tokens, head width]
  const at::Tensor scores = at::matmul(qkv[0], qkv[1].transpose(1, 2)) / 2;  // sqrt(head width)
  const at::Tensor is_later = at::triu(at::ones({kTokens, kTokens}, at::kBool), 1);
  const at::Tensor attended = at::softmax(scores.masked_fill(is_later, -1e300), -1);
  return at::matmul(attended, qkv[2]).transpose(0, 1).reshape({kTokens, -1});
}

int main(int, char** argv) {
  return run_step(argv[0], {2, 4}, [](const ProcessGroup& group) {
    const at::Tensor qkv = weights({kWidth, 3, kHeads, kHeadWidth}, 1),
                     out = weights({kWidth, kWidth}, 2),
                     x = random({kTokens, kWidth}, 3).requires_grad_();
    const at::Tensor y = at::matmul(attention(x, qkv), out);
    y.square().mean().backward();

    const at::Tensor own_qkv = part_of(qkv, 2, group).requires_grad_(),
                     own_out = part_of(out, 0, group).requires_grad_(),
                     own_x = x.detach().clone().requires_grad_();
    const at::Tensor heads = attention(copy_to_region(own_x, group), own_qkv);
    const at::Tensor sum = reduce_from_region(at::matmul(heads, own_out), group);
    sum.square().mean().backward();

    if (group.rank() == 0) fmt::print("each process has {} of {} heads\n", own_qkv.size(2), kHeads);
    Comparison comparison;
    comparison.add("output", sum, y, 1e-12);
    comparison.add("gradient of X", own_x.grad(), x.grad(), 1e-12);
    comparison.add("gradients of parts", own_qkv.grad(), part_of(qkv.grad(), 2, group), 1e-12);
    comparison.add("gradients of parts", own_out.grad(), part_of(out.grad(), 0, group), 1e-12);
    return comparison.finish(group);
  });
}
