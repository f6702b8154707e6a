// A custom model, data set and loss: classifies noisy sine waves with the focal loss.
#include <memory>

#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "gallop/gallop.h"

struct Net : torch::nn::Module {
  torch::nn::Conv1d conv = register_module("conv", torch::nn::Conv1d(1, 16, 9));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(16 * 56, 3));
  at::Tensor forward(const at::Tensor& x) { return head(conv(x).relu().flatten(1)); }
};

gallop::Sample wave(int64_t index, int64_t epoch) {
  gallop::Philox random(/*seed=*/1, gallop::Purpose::kSample, epoch, index);
  const float phase = 6.28F * random.uniform(), step = 0.2F * static_cast<float>(1 + index % 3);
  at::Tensor x = (at::arange(64, at::kFloat) * step + phase).sin();
  for (int t = 0; t < 64; ++t) x.data_ptr<float>()[t] += random.uniform() - 0.5F;
  return {.input = x.unsqueeze(0), .target = at::scalar_tensor(index % 3, at::kLong)};
}

at::Tensor focal(const at::Tensor& logits, const gallop::NamedTensors& batch) {
  const at::Tensor& labels = *gallop::find_tensor(batch, "target");
  const at::Tensor log_p = logits.log_softmax(1).gather(1, labels.unsqueeze(1));
  return ((1 - log_p.exp()).square() * -log_p).sum();
}

int main(int argc, char** argv) {
  return gallop::run_main([&] {
    at::manual_seed(1);  // Otherwise, each call draws other initial weights.
    gallop::Trainer trainer({.name = "waves", .overrides = {argv + 1, argv + argc}, .recipe = R"(
      {data: {batch_size: 50, validation: 0.2}, optimizer: {name: adamw, lr: 0.003},
       train: {epochs: 5, metrics: [{f1: {average: per-class}}]}})"});
    const auto data = gallop::computed_data(2500, wave, {"slow", "medium", "fast"});
    return trainer.fit(std::make_shared<Net>(), data, focal);
  });
}
