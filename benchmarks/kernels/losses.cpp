#include <array>

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include "cases.h"
#include "gallop/model/functional/cross_entropy.h"

namespace gallop::benchmark {

namespace {

// Logits in `type`, as a GEMM under autocast returns them.
Case cross_entropy_case(int64_t rows, int64_t classes, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, classes}).to(type).requires_grad_(true);
  const at::Tensor target = at::randint(classes, {rows}, at::kLong);
  const auto run = [=](const at::Tensor& loss) {
    loss.backward();
    x.mutable_grad().reset();
  };
  Case result{.name = fmt::format("cross-entropy/{}/{}x{}", name_of(type), rows, classes)};
  result.bytes = 3 * bytes_of(x);
  result.forms.push_back(
      {"gallop", [=] { run(model::functional::cross_entropy(x, target, {}).loss); }});
  result.forms.push_back(
      {"aten",
       [=] { run(at::cross_entropy_loss(x.to(at::kFloat), target, {}, at::Reduction::Sum)); }});
  return result;
}

// With the last linear layer, which has fp32 weights, under autocast if `type` is bf16.
Case linear_cross_entropy_case(int64_t rows, int64_t width, int64_t classes, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, width}).to(type).requires_grad_(true);
  const at::Tensor weight = at::randn({classes, width}).mul_(0.02).requires_grad_(true);
  const at::Tensor target = at::randint(classes, {rows}, at::kLong);
  const auto run = [=](const at::Tensor& loss) {
    loss.backward();
    for (const at::Tensor& leaf : {x, weight}) leaf.mutable_grad().reset();
  };
  Case result{
      .name = fmt::format("linear-cross-entropy/{}/{}x{}x{}", name_of(type), rows, width, classes)};
  result.forms.push_back(
      {"gallop", [=] {
         run(model::functional::cross_entropy(model::Output{x, weight}, target, {}).loss);
       }});
  result.forms.push_back(
      {"aten", [=] {
         const at::Tensor logits = at::linear(x, weight.to(type));
         run(at::cross_entropy_loss(logits.to(at::kFloat), target, {}, at::Reduction::Sum));
       }});
  return result;
}

}  // namespace

std::vector<MakeCase> loss_cases() {
  std::vector<MakeCase> cases;
  for (const auto type : {at::kBFloat16, at::kFloat}) {
    for (const auto& [rows, classes] :
         std::vector<std::array<int64_t, 2>>{{128, 10}, {2048, 65}, {256, 1000}, {1024, 50257}}) {
      cases.push_back([=] { return cross_entropy_case(rows, classes, type); });
    }
    cases.push_back([=] { return linear_cross_entropy_case(1024, 768, 50257, type); });
  }
  return cases;
}

}  // namespace gallop::benchmark
