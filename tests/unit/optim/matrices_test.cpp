// Optimizers of matrices whose kernels are cut into parts: matrices of many parts, several of one
// size, filters and vectors, held against LibTorch's operators in fp64.
#include <string>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include "gallop/optim/adafactor.h"
#include "gallop/optim/muon.h"

namespace gallop::optim {
namespace {

// Above a million elements all threads work on one tensor.
NamedTensors many_sizes() {
  NamedTensors parameters;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1100, 1000},
                                            {300, 70},
                                            {300, 70},
                                            {70, 300},
                                            {1, 9},
                                            {5, 7, 3, 3},
                                            {33}}) {
    parameters.push_back({"p" + std::to_string(parameters.size()), at::randn(sizes)});
  }
  // All gradients have the same sign, so that steps do not cancel.
  parameters.push_back({"number", at::scalar_tensor(0.5)});
  return parameters;
}

using Make = std::unique_ptr<Optimizer> (*)(const NamedTensors& parameters);

std::unique_ptr<Optimizer> plain_adafactor(const NamedTensors& parameters) {
  return make_adafactor({.eps1 = 1e-7, .weight_decay = 0.1}, parameters);
}
std::unique_ptr<Optimizer> unscaled_adafactor(const NamedTensors& parameters) {
  return make_adafactor({.eps1 = 1e-7, .relative_step = false, .scale_parameter = false},
                        parameters);
}
std::unique_ptr<Optimizer> muon(const NamedTensors& parameters) {
  return make_muon({.ns_precision = "fp32"}, parameters);
}

using Case = std::pair<const char*, Make>;

class Matrices : public testing::TestWithParam<Case> {
 protected:
  void TearDown() override { at::set_num_threads(threads_); }
  int threads_ = at::get_num_threads();

  // Copies of the parameters, after a few steps with a loss scale.
  static NamedTensors trained(const NamedTensors& start, at::ScalarType type) {
    NamedTensors parameters;
    for (const auto& [name, tensor] : start) parameters.push_back({name, tensor.to(type).clone()});
    const auto optimizer = GetParam().second(parameters);
    for (int step = 1; step <= 4; ++step) {
      for (auto& [name, tensor] : parameters) {
        tensor.mutable_grad() = tensor.detach().mul(step).sin();
      }
      optimizer->step(at::scalar_tensor(0.02, at::kFloat), at::scalar_tensor(4, at::kFloat));
    }
    return parameters;
  }
};

TEST_P(Matrices, MatchFp64Operators) {
  const NamedTensors start = many_sizes();
  const NamedTensors ours = trained(start, at::kFloat), wanted = trained(start, at::kDouble);
  for (size_t i = 0; i < start.size(); ++i) {
    const double moved = (wanted[i].tensor - start[i].tensor).abs().max().item<double>();
    const double error = (ours[i].tensor - wanted[i].tensor).abs().max().item<double>();
    EXPECT_GT(moved, 1e-4) << start[i].name;
    EXPECT_LT(error, 1e-5) << start[i].name << " of sizes " << start[i].tensor.sizes();
  }
}

TEST_P(Matrices, AreBitIdenticalForAnyNumberOfThreads) {
  if (std::string(GetParam().first) == "muon") {
    GTEST_SKIP() << "LibTorch's products have other bits with other threads";
  }
  const NamedTensors start = many_sizes();
  at::set_num_threads(1);
  const NamedTensors alone = trained(start, at::kFloat);
  at::set_num_threads(3);
  const NamedTensors together = trained(start, at::kFloat);
  for (size_t i = 0; i < start.size(); ++i) {
    EXPECT_TRUE(at::equal(alone[i].tensor, together[i].tensor)) << start[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(, Matrices,
                         testing::Values(Case("adafactor", plain_adafactor),
                                         Case("adafactor_unscaled", unscaled_adafactor),
                                         Case("muon", muon)),
                         [](const auto& tested) { return tested.param.first; });

}  // namespace
}  // namespace gallop::optim
