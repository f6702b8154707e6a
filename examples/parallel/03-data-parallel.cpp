// Step 3: data parallelism. Every process has the whole model and a part of each batch. The
// gradient of a sum is the sum of gradients: after an all-reduce each process has the gradient of
// the batch, makes the same update, and so keeps the same weights.
//
// The sum is divided by the number of samples of the whole batch. A mean of the processes' means
// would be another one as soon as they have different numbers of samples.
#include "common.h"

struct Model {
  at::Tensor first = weights({8, 16}, 1), second = weights({16, 1}, 2);

  at::Tensor loss_sum(const at::Tensor& x, const at::Tensor& y) const {
    return (at::matmul(at::tanh(at::matmul(x, first)), second) - y).square().sum();
  }
};

int main(int, char** argv) {
  return run_step(argv[0], {2, 3, 4}, [](const ProcessGroup& group) {
    const int64_t rows = 12 * group.size() + 1;  // No number of processes divides it.
    const int64_t begin = rows * group.rank() / group.size(),
                  end = rows * (group.rank() + 1) / group.size();
    Model divided, whole;
    double mean_of_means = 0, mean = 0;
    for (uint64_t step = 0; step < 5; ++step) {
      const at::Tensor x = random({rows, 8}, 10 + step), y = random({rows, 1}, 20 + step);

      at::Tensor loss = divided.loss_sum(x.slice(0, begin, end), y.slice(0, begin, end));
      (loss / static_cast<double>(rows)).backward();
      for (const at::Tensor& weight : {divided.first, divided.second}) {
        group.all_reduce(weight.grad());
      }
      sgd({divided.first, divided.second}, 0.1);

      const at::Tensor mean_here = loss.detach() / static_cast<double>(end - begin);
      group.all_reduce(mean_here);
      mean_of_means = mean_here.item<double>() / group.size();

      loss = whole.loss_sum(x, y) / static_cast<double>(rows);
      loss.backward();
      sgd({whole.first, whole.second}, 0.1);
      mean = loss.item<double>();
    }
    if (group.rank() == 0) {
      fmt::print("loss {:.6f}; the mean of the processes' means would be {:.6f}\n", mean,
                 mean_of_means);
    }

    Comparison comparison;
    comparison.add("weights", divided.first, whole.first, 1e-12);
    comparison.add("weights", divided.second, whole.second, 1e-12);
    return comparison.finish(group);
  });
}
