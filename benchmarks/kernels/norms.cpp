#include <array>

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>

#include "cases.h"
#include "gallop/model/functional/batch_norm.h"
#include "gallop/model/functional/layer_norm.h"

namespace gallop::benchmark {

namespace {

// relu(batch norm(x) + residual), the end of a residual block.
Case batch_norm_case(std::vector<int64_t> sizes, bool with_residual, at::ScalarType type) {
  const auto channels_last = [](const at::Tensor& x) {
    return x.contiguous(at::MemoryFormat::ChannelsLast);
  };
  const at::Tensor x = channels_last(at::randn(sizes).to(type)).requires_grad_(true);
  const at::Tensor residual =
      with_residual ? channels_last(at::randn(sizes).to(type)).requires_grad_(true) : at::Tensor();
  const at::Tensor dy = channels_last(at::randn(sizes).to(type));
  const kernel::BatchNormParameters parameters{.weight = at::ones({sizes[1]}).requires_grad_(true),
                                               .bias = at::zeros({sizes[1]}).requires_grad_(true),
                                               .running_mean = at::zeros({sizes[1]}),
                                               .running_var = at::ones({sizes[1]})};
  const auto run = [=](const at::Tensor& y) {
    y.backward(dy);
    for (const at::Tensor& leaf : {x, residual, parameters.weight, parameters.bias}) {
      if (leaf.defined()) leaf.mutable_grad().reset();
    }
  };
  Case result{.name = fmt::format("batch-norm/{}/{}{}", name_of(type), fmt::join(sizes, "x"),
                                  with_residual ? "/residual" : "")};
  // Forward reads x twice and writes y; backward reads x and dy twice and writes dx. The residual
  // is read once, and its gradient is written, and read instead of dy.
  result.bytes = bytes_of(x) * (with_residual ? 10 : 8);
  result.forms.push_back(
      {"gallop",
       [=] { run(model::functional::batch_norm(x, residual, parameters, {.relu = true})); }});
  result.forms.push_back({"aten", [=] {
                            at::Tensor y =
                                at::batch_norm(x, parameters.weight, parameters.bias,
                                               parameters.running_mean, parameters.running_var,
                                               true, parameters.momentum, parameters.eps, true);
                            if (residual.defined()) y.add_(residual);
                            run(y.relu_());
                          }});
  return result;
}

// The norm of an fp32 stream and a bf16 branch, before a bf16 GEMM; or all in fp32.
Case layer_norm_case(int64_t rows, int64_t width, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, width}).requires_grad_(true);
  const at::Tensor branch = at::randn({rows, width}).to(type).requires_grad_(true);
  const at::Tensor weight = at::ones({width}).requires_grad_(true);
  const at::Tensor bias = at::zeros({width}).requires_grad_(true);
  const at::Tensor dy = at::randn({rows, width}).to(type), dsum = at::randn({rows, width});
  const auto run = [=](const at::Tensor& y, const at::Tensor& sum) {
    torch::autograd::backward({y, sum}, {dy, dsum});
    for (const at::Tensor& leaf : {x, branch, weight, bias}) leaf.mutable_grad().reset();
  };
  const bool bf16 = type == at::kBFloat16;
  Case result{.name = fmt::format("layer-norm/{}/{}x{}", name_of(type), rows, width)};
  // Forward reads both and writes the sum and y; backward reads dy, dsum and the sum and writes the
  // two gradients, which are the same tensor in fp32.
  result.bytes = 5 * bytes_of(x) + (bf16 ? 4 : 3) * bytes_of(branch);
  result.forms.push_back(
      {"gallop", [=] {
         const bool before = at::autocast::is_autocast_enabled(at::kCPU);
         at::autocast::set_autocast_enabled(at::kCPU, bf16);
         const auto both = model::functional::layer_norm({x, branch}, weight, bias, 1e-5, false);
         at::autocast::set_autocast_enabled(at::kCPU, before);
         run(both.y, both.sum);
       }});
  result.forms.push_back({"aten", [=] {
                            const at::Tensor sum = x + branch;
                            run(at::layer_norm(sum, width, weight, bias, 1e-5).to(type), sum);
                          }});
  return result;
}

}  // namespace

std::vector<MakeCase> norm_cases() {
  std::vector<MakeCase> cases;
  for (const auto type : {at::kBFloat16, at::kFloat}) {
    for (const bool residual : {false, true}) {
      for (const auto& sizes : std::vector<std::vector<int64_t>>{{128, 16, 32, 32},
                                                                 {128, 32, 16, 16},
                                                                 {128, 64, 8, 8},
                                                                 {128, 256, 8, 8},
                                                                 {32, 64, 56, 56}}) {
        cases.push_back([=] { return batch_norm_case(sizes, residual, type); });
      }
    }
    for (const auto& [rows, width] :
         std::vector<std::array<int64_t, 2>>{{2048, 256}, {8320, 192}, {1024, 768}}) {
      cases.push_back([=] { return layer_norm_case(rows, width, type); });
    }
  }
  return cases;
}

}  // namespace gallop::benchmark
