// Step 5: micro-batches (GPipe; Huang et al., 2019). A batch is cut into m micro-batches. While the
// second stage computes the first of them, the first stage computes the second, and so on. What is
// left of the waiting is the bubble: the first passes until the last stage has something to do, and
// the last ones. It is (p-1)/(m+p-1) of the time of p stages, whatever a pass takes.
//
// Gradients of all micro-batches are added up before the update, so that weights become those of
// one process with the same micro-batches. Each stage holds the activations of all m at once.
#include <algorithm>
#include <chrono>

#include "common.h"

// The time of a step in forward passes, of which a backward pass takes two, from a timetable: a
// stage begins a pass when the pass before it and that of its neighbor are done.
int64_t time_of_step(size_t stages, size_t micro_batches) {
  std::vector<int64_t> done(stages, 0);  // When each stage has done its last pass so far.
  for (size_t i = 0; i < micro_batches; ++i) {
    for (size_t s = 0; s < stages; ++s) done[s] = std::max(done[s], s > 0 ? done[s - 1] : 0) + 1;
  }
  for (size_t i = 0; i < micro_batches; ++i) {
    for (size_t s = stages; s-- > 0;) {
      done[s] = std::max(done[s], s + 1 < stages ? done[s + 1] : 0) + 2;
    }
  }
  return done[0];
}

int main(int, char** argv) {
  return run_step(argv[0], {2, 3, 4}, [](const ProcessGroup& group) {
    const size_t p = static_cast<size_t>(group.size()), m = 4;
    const double rows = 16;
    double waited = 0;
    Tensors divided, whole;  // A weight for each stage.
    for (uint64_t i = 0; i < p; ++i) {
      divided.push_back(weights({8, 8}, 1 + i));
      whole.push_back(weights({8, 8}, 1 + i));
    }
    const at::Tensor own = divided[static_cast<size_t>(group.rank())];
    for (uint64_t step = 0; step < 3; ++step) {
      const at::Tensor y = random({8}, 40 + step);
      const Tensors inputs = random({16, 8}, 30 + step).chunk(m);
      // Divided by the rows of the whole batch.
      const auto loss = [&](const at::Tensor& x) { return (x - y).square().sum() / rows; };

      Stage stage(
          group, inputs, [&](const at::Tensor& x) { return at::tanh(at::matmul(x, own)); }, loss,
          /*seconds=*/0.005);
      group.barrier();
      const auto begin = std::chrono::steady_clock::now();
      for (size_t i = 0; i < m; ++i) stage.forward(i);
      for (size_t i = 0; i < m; ++i) stage.backward(i);
      stage.finish();
      group.barrier();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      waited = 1 - stage.computing / took.count();
      sgd({own}, 0.1);

      for (at::Tensor x : inputs) {
        for (const at::Tensor& weight : whole) x = at::tanh(at::matmul(x, weight));
        loss(x).backward();
      }
      sgd(whole, 0.1);
    }
    if (group.rank() == 0) {
      const int64_t time = time_of_step(p, m), busy = 3 * static_cast<int64_t>(m);
      fmt::print(
          "{} stages, {} micro-batches: a stage waits for {}/{} = {:.1f} % of a step, by the "
          "timetable {}/{}; measured {:.1f} %\n",
          p, m, p - 1, m + p - 1,
          100.0 * static_cast<double>(p - 1) / static_cast<double>(m + p - 1), time - busy, time,
          100 * waited);
    }

    Comparison comparison;
    comparison.add("weights", own, whole[static_cast<size_t>(group.rank())], 0);
    return comparison.finish(group);
  });
}
