#include "gallop/model/functional/attention.h"

#include <array>
#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>

#include "cases.h"

namespace gallop::benchmark {

namespace {

at::Tensor by_products(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                       const at::Tensor& mask) {
  const auto flat = [](const at::Tensor& x_BHTD) { return x_BHTD.flatten(0, 1); };
  auto weights = at::bmm(flat(q) * scale, flat(k).transpose(1, 2));
  if (mask.defined()) weights = weights.add_(mask);
  return at::bmm(at::softmax(weights, -1), flat(v)).view(q.sizes());
}

Case attention_case(int64_t batch, int64_t tokens, int64_t heads, int64_t width, bool causal,
                    at::ScalarType type) {
  const at::Tensor qkv = at::randn({batch, tokens, 3, heads, width}).to(type).requires_grad_(true);
  const at::Tensor dy = at::randn({batch, tokens, heads, width}).to(type);
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  at::Tensor mask;
  if (causal) {
    mask =
        at::full({tokens, tokens}, -std::numeric_limits<double>::infinity(), dy.options()).triu_(1);
  }
  Case result{.name = fmt::format("attention/{}/{}x{}x{}x{}{}", name_of(type), batch, tokens, heads,
                                  width, causal ? "/causal" : "")};
  result.forms.push_back(
      {"gallop", [=] {
         forward_backward(model::functional::attention(qkv, {.causal = causal, .scale = scale}), dy,
                          qkv);
       }});
  const auto parts = [=] { return qkv.permute({2, 0, 3, 1, 4}).unbind(0); };
  result.forms.push_back({"sdpa", [=] {
                            const auto p = parts();
                            const auto y =
                                at::scaled_dot_product_attention(p[0], p[1], p[2], {}, 0, causal);
                            forward_backward(y.transpose(1, 2).contiguous(), dy, qkv);
                          }});
  result.forms.push_back({"bmm", [=] {
                            const auto p = parts();
                            const auto y = by_products(p[0], p[1], p[2], scale, mask);
                            forward_backward(y.transpose(1, 2).contiguous(), dy, qkv);
                          }});
  return result;
}

}  // namespace

std::vector<MakeCase> attention_cases() {
  std::vector<MakeCase> cases;
  for (const auto type : {at::kBFloat16, at::kFloat}) {
    for (const bool causal : {true, false}) {
      for (const auto& [batch, tokens, heads, width] :
           std::vector<std::array<int64_t, 4>>{{16, 128, 8, 32},
                                               {128, 65, 3, 64},
                                               {16, 197, 3, 64},
                                               {8, 256, 12, 64},
                                               {4, 512, 12, 64},
                                               {4, 1024, 12, 64},
                                               {2, 2048, 4, 128},
                                               {64, 16, 4, 16}}) {
        cases.push_back([=] { return attention_case(batch, tokens, heads, width, causal, type); });
      }
    }
  }
  return cases;
}

}  // namespace gallop::benchmark
