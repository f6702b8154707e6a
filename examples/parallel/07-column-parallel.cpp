// Step 7: a linear layer whose outputs are divided. Y = X A, where each process has some of the
// columns of A, and so computes these columns of Y, without any communication.
//
// Backward, each process has the gradient of its columns. dA needs nothing else. dX = dY A^T is a
// sum over all columns, of which each process has a part: one all-reduce.
#include "common.h"

int main(int, char** argv) {
  return run_step(argv[0], {2, 4}, [](const ProcessGroup& group) {
    const at::Tensor x = random({6, 8}, 1), a = random({8, 12}, 2), dy = random({6, 12}, 3);
    const at::Tensor own_a = part_of(a, 1, group), own_dy = part_of(dy, 1, group);

    const at::Tensor own_y = at::matmul(x, own_a);
    const at::Tensor own_da = at::matmul(x.t(), own_dy);
    const at::Tensor dx = at::matmul(own_dy, own_a.t());
    group.all_reduce(dx);

    // If the next operator needs all columns, they are gathered: parts lie behind each other.
    const int64_t processes = group.size(), columns = own_y.size(1);
    const at::Tensor parts = at::empty({processes, 6, columns}, at::kDouble);
    group.all_gather(parts, own_y);
    const at::Tensor y = parts.transpose(0, 1).reshape({6, processes * columns});

    if (group.rank() == 0) {
      fmt::print("each process has {} of {} columns of A\n", own_a.size(1), a.size(1));
    }
    Comparison comparison;
    comparison.add("output", y, at::matmul(x, a), 1e-12);
    comparison.add("gradient of A", own_da, part_of(at::matmul(x.t(), dy), 1, group), 1e-12);
    comparison.add("gradient of X", dx, at::matmul(dy, a.t()), 1e-12);
    return comparison.finish(group);
  });
}
