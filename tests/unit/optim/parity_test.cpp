// Against PyTorch's own optimizers: tests/parity/make_optimizers.py made the fixture.
#include <map>
#include <set>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "gallop/config/resolve.h"
#include "gallop/optim/optimizer.h"
#include "gallop/tensor/safetensors.h"

namespace gallop::optim {
namespace {

class Parity : public testing::Test {
 protected:
  void SetUp() override {
    // Tensors this small are slower with more threads, and much slower on a busy machine.
    at::set_num_threads(1);
    const fs::path path = fs::path(GALLOP_FIXTURES) / "optimizers.safetensors";
    for (const auto& [name, tensor] : read_safetensors(path).tensors) {
      stored_.emplace(name, tensor);
      if (const size_t end = name.find("/1/"); end != std::string::npos) {
        cases_.insert(name.substr(0, end));
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

  // "sgd momentum=0.9 nesterov=true" as a recipe gives it.
  static std::unique_ptr<Optimizer> build(const OptimizerRegistry& registry,
                                          const std::string& text, const NamedTensors& parameters) {
    config::Component component(registry, text.substr(0, text.find(' ')));
    config::Node options;
    for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1)) {
      const size_t equals = text.find('=', at);
      options.at_or_add(text.substr(at + 1, equals - at - 1), {}) =
          config::Node::make_scalar(text.substr(equals + 1, text.find(' ', equals) - equals - 1));
    }
    config::Problems problems;
    config::read_fields(
        options, [&](config::Visitor& visitor) { component.visit_fields(visitor); }, problems);
    problems.throw_if_any();
    return registry.build(component, parameters);
  }

  // Largest difference from PyTorch after 1, 2 and 50 steps.
  double largest_difference(const std::string& text) const {
    NamedTensors parameters = start();
    const auto optimizer = build(built_in_optimizers(), text, parameters);
    const at::Tensor& lr = stored_.at("LR");
    double largest = 0;
    for (int64_t step = 0; step < lr.numel(); ++step) {
      for (auto& [name, tensor] : parameters) {
        tensor.mutable_grad() = stored_.at("GRADIENT/" + name)[step].clone();
      }
      optimizer->step(lr[step]);
      for (const auto& [name, tensor] : parameters) {
        const auto expected = stored_.find(text + "/" + std::to_string(step + 1) + "/" + name);
        if (expected == stored_.end()) continue;
        ++compared_;
        largest = std::max(largest, (tensor - expected->second).abs().max().item<double>());
      }
    }
    return largest;
  }

  std::map<std::string, at::Tensor> stored_;
  std::set<std::string> cases_;
  mutable int compared_ = 0;
  int threads_ = at::get_num_threads();
};

TEST_F(Parity, EveryCombinationOfOptionsFollowsPyTorch) {
  ASSERT_EQ(cases_.size(), 24u);
  for (const std::string& text : cases_) {
    compared_ = 0;
    // The weights are of order 1, so that this is also the relative difference.
    EXPECT_LT(largest_difference(text), 1e-6) << text;
    EXPECT_EQ(compared_, 3 * 3) << text;
  }
}

}  // namespace
}  // namespace gallop::optim
