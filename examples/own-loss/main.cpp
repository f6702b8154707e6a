// A custom loss: errors below the target cost four times as much as errors above it, so the model
// learns the 80 % quantile of y.
#include <memory>

#include <ATen/ops/maximum.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>

#include "gallop/gallop.h"

// Returns the sum over the batch: Gallop divides it by the number of samples of all micro-batches
// and processes.
at::Tensor pinball(const at::Tensor& outputs, const gallop::NamedTensors& batch) {
  const at::Tensor error = *gallop::find_tensor(batch, "target") - outputs;
  return at::maximum(0.8 * error, -0.2 * error).sum();
}

int main() {
  return gallop::run_main([] {
    const at::Tensor x = at::rand({2000, 1});
    const at::Tensor y = 2 * x + at::randn({2000, 1});
    const auto line = torch::nn::Linear(1, 1).ptr();
    gallop::Trainer trainer({.name = "quantile", .recipe = R"(
      data: {batch_size: 100, validation: 0.2}
      optimizer: {name: adam, lr: 0.05}
      schedule: {name: linear}
      train: {epochs: 20, gradient_accumulation: 2}
    )"});
    const auto outcome = trainer.fit(line, gallop::regression_data(x, y), pinball);
    const double below = (y <= line->forward(x)).to(at::kDouble).mean().item<double>();
    fmt::print("{:.0f} % of the points lie below the line\n", 100 * below);
    return outcome;
  });
}
