// Fits y = 3x - 1 with a LibTorch module: Gallop adds console output, a run folder, resume and
// compiled steps.
#include <memory>

#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>

#include "gallop/gallop.h"

struct Line : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(1, 1));
  at::Tensor forward(const at::Tensor& x) { return linear->forward(x); }
};

int main() {
  return gallop::run_main([] {
    const at::Tensor x = at::rand({512, 1}) * 2 - 1;
    const at::Tensor y = 3 * x - 1 + 0.1 * at::randn({512, 1});
    const auto line = std::make_shared<Line>();
    gallop::Trainer trainer({.name = "line", .recipe = R"(
      data: {batch_size: 64, validation: 0.2}
      optimizer: {name: sgd, lr: 0.1}
      train: {epochs: 20}
    )"});
    const auto outcome = trainer.fit(line, gallop::regression_data(x, y));
    fmt::print("y = {:.2f}x {:+.2f} after {} steps\n", line->linear->weight.item<double>(),
               line->linear->bias.item<double>(), outcome.step);
    return outcome;
  });
}
