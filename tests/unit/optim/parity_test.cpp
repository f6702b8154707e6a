// Against PyTorch's own optimizers: tests/parity/make_optimizers.py made the fixture.
#include <map>
#include <set>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/optim/optimizer.h"
#include "gallop/tensor/safetensors.h"
#include "unit/fixtures.h"
#include "unit/optim/wrapped.h"

namespace gallop::optim {
namespace {

class Parity : public testing::Test {
 protected:
  void SetUp() override {
    // Tensors this small are slower with more threads, and much slower on a busy machine.
    at::set_num_threads(1);
    const fs::path path = fixtures() / "optimizers.safetensors";
    for (const auto& [name, tensor] : read_safetensors(path).tensors) {
      stored_.emplace(name, tensor);
      if (const size_t end = name.find(' '); end != std::string::npos) {
        cases_[name.substr(0, end)].insert(name);
      }
    }
  }

  NamedTensors start() const {
    NamedTensors parameters;
    for (const char* name : {"weight", "bias", "conv"}) {
      parameters.push_back({name, stored_.at(std::string("START/") + name).clone()});
    }
    return parameters;
  }

  void TearDown() override { at::set_num_threads(threads_); }

  // Largest difference from PyTorch after 50 steps, relative to the largest weight if above 1.
  double largest_difference(const std::string& text) const {
    NamedTensors parameters = start();
    const auto optimizer = built(built_in_optimizers(), text, parameters);
    const at::Tensor& lr = stored_.at("LR");
    for (int64_t step = 0; step < lr.numel(); ++step) {
      for (auto& [name, tensor] : parameters) {
        tensor.mutable_grad() = stored_.at("GRADIENT/" + name)[step].clone();
      }
      optimizer->step(lr[step]);
    }
    std::vector<at::Tensor> all;
    for (const auto& [name, tensor] : parameters) all.push_back(tensor.flatten());
    const at::Tensor& wanted = stored_.at(text);
    const double size = std::max(1.0, wanted.abs().max().item<double>());
    return (at::cat(all) - wanted).abs().max().item<double>() / size;
  }

  std::map<std::string, at::Tensor> stored_;
  std::map<std::string, std::set<std::string>> cases_;  // By optimizer.
  int threads_ = at::get_num_threads();
};

TEST_F(Parity, EveryCombinationOfOptionsFollowsPyTorch) {
  const std::map<std::string, size_t> counts = {
      {"adadelta", 12}, {"adafactor", 24}, {"adagrad", 24}, {"adam", 24},
      {"adamax", 12},   {"adamw", 24},     {"muon", 32},    {"nadam", 40},
      {"radam", 20},    {"rmsprop", 48},   {"sgd", 12}};
  for (const auto& [optimizer, count] : counts) EXPECT_EQ(cases_[optimizer].size(), count);
  EXPECT_EQ(cases_.size(), counts.size());
  for (const auto& [optimizer, texts] : cases_) {
    // Muon's products are in bf16 in both, and other machines round them in another order.
    const double allowed = optimizer == "muon" ? 2e-2 : 2e-6;
    double largest = 0;
    for (const std::string& text : texts) {
      const double difference = largest_difference(text);
      EXPECT_LT(difference, allowed) << text;
      largest = std::max(largest, difference);
    }
    RecordProperty(optimizer, fmt::format("{:.1e}", largest));
    RecordProperty(optimizer + ".cases", static_cast<int>(texts.size()));
  }
}

}  // namespace
}  // namespace gallop::optim
