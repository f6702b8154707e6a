// A custom data set: noisy sine waves, generated as they are read and classified by frequency.
#include <cmath>
#include <memory>
#include <numbers>

#include <fmt/format.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "gallop/base/philox.h"
#include "gallop/gallop.h"

// Sample i of an epoch is a function of (i, epoch): it is the same for any number of loader threads
// and in a resumed run.
class Waves : public gallop::data::Samples {
 public:
  Waves(int64_t size, uint64_t seed)
      : Samples({{.name = "wave", .shape = {{1, 64}, at::kFloat}},
                 {.name = "frequency", .shape = {{}, at::kLong}}}),
        size_(size),
        seed_(seed) {}
  int64_t size() const override { return size_; }
  bool every_target_counts() const override { return true; }
  bool fill(int64_t index, int64_t epoch, const gallop::data::SampleRow& row,
            gallop::data::Scratch&) const override {
    gallop::Philox random(seed_, gallop::Purpose::kSample, epoch, index);
    const double phase = random.uniform(), frequency = static_cast<double>(2 + index % 3);
    for (int t = 0; t < 64; ++t) {
      const double turns = phase + frequency * t / 64;
      row.as<float>(0)[t] =
          static_cast<float>(std::sin(2 * std::numbers::pi * turns)) + random.uniform() - 0.5F;
    }
    *row.as<int64_t>(1) = index % 3;
    return true;
  }

 private:
  int64_t size_;
  uint64_t seed_;
};

int main() {
  try {
    using namespace torch::nn;
    Sequential net(Conv1d(Conv1dOptions(1, 16, 9).stride(4)), ReLU(), Flatten(),
                   Linear(16 * 14, 3));
    gallop::FitData data{.train = std::make_shared<Waves>(2000, 1),
                         .validation = std::make_shared<Waves>(500, 2)};
    data.signature = {
        .kind = "numbers", .task = "classification", .classes = {"slow", "medium", "fast"}};
    gallop::Trainer trainer({.name = "waves", .recipe = R"(
      data: {batch_size: 50}
      optimizer: {name: adamw, lr: 0.003}
      schedule: {name: cosine}
      train: {epochs: 5, metrics: [{f1: {average: per-class}}]}
    )"});
    const auto outcome = trainer.fit_model(
        [&] {
          return gallop::model::make_model(net.ptr(),
                                           [&](const at::Tensor& x) { return net->forward(x); });
        },
        data);
    return outcome.finished ? 0 : static_cast<int>(gallop::ExitCode::kStopped);
  } catch (const gallop::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
