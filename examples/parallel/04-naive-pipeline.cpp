// Step 4: a model that is cut between its layers. Each process has some of them, a stage. Forward,
// the output of a stage is sent to the next one; backward, the gradient of its input to the one
// before. Autograd ends at the cut: the receiver of an activation makes it the beginning of a graph
// of its own, and the sender continues its backward pass with the gradient that comes back.
//
// Weights, gradients and updates stay where they are. But only one process computes at a time.
#include "common.h"

struct Layers {
  Tensors all;

  explicit Layers(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) all.push_back(weights({8, 8}, 1 + i));
  }
  at::Tensor forward(at::Tensor x, size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) x = at::tanh(at::matmul(x, all[i]));
    return x;
  }
};

int main(int, char** argv) {
  return run_step(argv[0], {2, 3, 4}, [](const ProcessGroup& group) {
    const auto stages = static_cast<size_t>(group.size()),
               stage = static_cast<size_t>(group.rank());
    const size_t count = 2 * stages, begin = 2 * stage, end = begin + 2;
    const bool is_first = stage == 0, is_last = stage == stages - 1;
    const Layers divided(count), whole(count);
    for (uint64_t step = 0; step < 3; ++step) {
      const at::Tensor x = random({16, 8}, 20 + step), y = random({16, 8}, 30 + step);

      at::Tensor input = x;
      if (!is_first) {
        input = at::empty_like(x);
        group.recv(input, group.rank() - 1);
        input.requires_grad_();
      }
      const at::Tensor output = divided.forward(input, begin, end);
      if (is_last) {
        (output - y).square().mean().backward();
      } else {
        group.send(output, group.rank() + 1);
        const at::Tensor gradient = at::empty_like(output);
        group.recv(gradient, group.rank() + 1);
        output.backward(gradient);
      }
      if (!is_first) group.send(input.grad(), group.rank() - 1);
      const Tensors own(divided.all.begin() + 2 * group.rank(),
                        divided.all.begin() + 2 * group.rank() + 2);
      sgd(own, 0.1);

      (whole.forward(x, 0, count) - y).square().mean().backward();
      sgd(whole.all, 0.1);
    }
    if (group.rank() == 0)
      fmt::print("each of {0} processes waits for {1}/{0} of the time\n", stages, stages - 1);

    // The same operators in the same order: the bits of one process.
    Comparison comparison;
    for (size_t i = begin; i < end; ++i) comparison.add("weights", divided.all[i], whole.all[i], 0);
    return comparison.finish(group);
  });
}
