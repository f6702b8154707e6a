#include <array>

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <fmt/format.h>

#include "cases.h"
#include "gallop/model/functional/activation.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/embedding.h"
#include "gallop/model/functional/swiglu.h"

namespace gallop::benchmark {

namespace {

Case activation_case(kernel::Activation kind, const char* name, int64_t rows, int64_t width,
                     at::ScalarType type) {
  const at::Tensor x = at::randn({rows, width}).to(type).requires_grad_(true);
  const at::Tensor bias = at::randn({width}).requires_grad_(true);
  const at::Tensor dy = at::randn({rows, width}).to(type);
  const auto run = [=](const at::Tensor& y) {
    y.backward(dy);
    for (const at::Tensor& leaf : {x, bias}) leaf.mutable_grad().reset();
  };
  Case result{.name = fmt::format("{}/{}/{}x{}", name, name_of(type), rows, width)};
  result.bytes = 5 * bytes_of(x);
  result.forms.push_back({"gallop", [=] { run(model::functional::activation(kind, x, bias)); }});
  result.forms.push_back({"aten", [=] {
                            const at::Tensor sum = x + bias.to(type);
                            run(kind == kernel::Activation::kGelu ? at::gelu(sum)
                                                                  : at::gelu(sum, "tanh"));
                          }});
  return result;
}

Case dropout_case(int64_t rows, int64_t width, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, width}).to(type).requires_grad_(true);
  const at::Tensor dy = at::randn({rows, width}).to(type);
  Case result{.name = fmt::format("dropout/{}/{}x{}", name_of(type), rows, width)};
  result.bytes = 4 * bytes_of(x);
  result.forms.push_back(
      {"gallop", [=] { forward_backward(model::functional::dropout(x, 0.1, true), dy, x); }});
  result.forms.push_back({"aten", [=] { forward_backward(at::dropout(x, 0.1, true), dy, x); }});
  return result;
}

Case swiglu_case(int64_t rows, int64_t width, at::ScalarType type) {
  const at::Tensor x = at::randn({rows, 2 * width}).to(type).requires_grad_(true);
  const at::Tensor dy = at::randn({rows, width}).to(type);
  Case result{.name = fmt::format("swiglu/{}/{}x{}", name_of(type), rows, width)};
  result.bytes = 3 * bytes_of(x) + 2 * bytes_of(dy);
  result.forms.push_back(
      {"gallop", [=] { forward_backward(model::functional::swiglu(x), dy, x); }});
  result.forms.push_back({"aten", [=] {
                            const auto parts = x.chunk(2, 1);
                            forward_backward(at::silu(parts[0]) * parts[1], dy, x);
                          }});
  return result;
}

Case embedding_case(int64_t batch, int64_t tokens, int64_t rows, int64_t width) {
  const at::Tensor indices = at::randint(rows, {batch, tokens}, at::kLong);
  const at::Tensor weight = at::randn({rows, width}).requires_grad_(true);
  const at::Tensor positions = at::randn({tokens, width}).requires_grad_(true);
  const at::Tensor dy = at::randn({batch, tokens, width});
  const auto run = [=](const at::Tensor& y) {
    y.backward(dy);
    for (const at::Tensor& leaf : {weight, positions}) leaf.mutable_grad().reset();
  };
  Case result{.name = fmt::format("embedding/fp32/{}x{}/{}x{}", batch, tokens, rows, width)};
  // Forward reads and writes rows; backward reads them twice and writes both gradients.
  result.bytes = 4 * bytes_of(dy) + bytes_of(weight) + bytes_of(positions);
  result.forms.push_back(
      {"gallop", [=] { run(model::functional::embedding(indices, weight, positions)); }});
  result.forms.push_back({"aten", [=] { run(at::embedding(weight, indices) + positions); }});
  return result;
}

}  // namespace

std::vector<MakeCase> pointwise_cases() {
  std::vector<MakeCase> cases;
  for (const auto type : {at::kBFloat16, at::kFloat}) {
    for (const auto& [rows, width] :
         std::vector<std::array<int64_t, 2>>{{2048, 1024}, {8320, 768}, {1024, 3072}}) {
      cases.push_back([=] {
        return activation_case(kernel::Activation::kGeluTanh, "gelu-tanh", rows, width, type);
      });
      cases.push_back(
          [=] { return activation_case(kernel::Activation::kGelu, "gelu", rows, width, type); });
    }
    for (const auto& [rows, width] :
         std::vector<std::array<int64_t, 2>>{{64, 256}, {2048, 256}, {1024, 3072}}) {
      cases.push_back([=] { return dropout_case(rows, width, type); });
    }
    cases.push_back([=] { return swiglu_case(2048, 704, type); });
    cases.push_back([=] { return swiglu_case(1024, 2048, type); });
  }
  cases.push_back([] { return embedding_case(16, 128, 65, 256); });
  cases.push_back([] { return embedding_case(1, 1024, 50257, 768); });
  return cases;
}

}  // namespace gallop::benchmark
