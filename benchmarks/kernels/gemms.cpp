#include <array>

#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include "cases.h"
#include "gallop/kernel/linear_gemm.h"
#include "gallop/kernel/linear_wgrad.h"

namespace gallop::benchmark {

namespace {

// The forward GEMM of a linear layer, and that of its input gradient.
Case linear_gemm_case(int64_t rows, int64_t inner, int64_t outputs, bool transposed_weight) {
  const at::Tensor x = at::randn({rows, inner}).to(at::kBFloat16);
  const at::Tensor weight =
      (transposed_weight ? at::randn({outputs, inner}) : at::randn({inner, outputs}))
          .to(at::kBFloat16);
  Case result{.name = fmt::format("linear-{}/bf16/{}x{}x{}", transposed_weight ? "gemm" : "dgrad",
                                  rows, inner, outputs)};
  result.forms.push_back({"gallop", [=] { kernel::linear_gemm(x, weight, transposed_weight); }});
  result.forms.push_back({"mm", [=] { at::mm(x, transposed_weight ? weight.t() : weight); }});
  return result;
}

// The weight gradient of a linear layer.
Case linear_wgrad_case(int64_t rows, int64_t outputs, int64_t inputs) {
  const at::Tensor dy = at::randn({rows, outputs}).to(at::kBFloat16);
  const at::Tensor x = at::randn({rows, inputs}).to(at::kBFloat16);
  Case result{.name = fmt::format("linear-wgrad/bf16/{}x{}x{}", rows, outputs, inputs)};
  result.forms.push_back({"gallop", [=] { kernel::linear_wgrad(dy, x); }});
  result.forms.push_back({"mm", [=] { at::mm(dy.t(), x); }});
  return result;
}

}  // namespace

std::vector<MakeCase> gemm_cases() {
  std::vector<MakeCase> cases;
  for (const auto& [rows, inputs, outputs] :
       std::vector<std::array<int64_t, 3>>{{2048, 256, 768},
                                           {2048, 256, 256},
                                           {2048, 256, 1024},
                                           {2048, 1024, 256},
                                           {8320, 192, 576},
                                           {8320, 192, 768},
                                           {8320, 768, 192}}) {
    cases.push_back([=] { return linear_gemm_case(rows, inputs, outputs, true); });
    cases.push_back([=] { return linear_gemm_case(rows, outputs, inputs, false); });
  }
  for (const auto& [rows, outputs, inputs] :
       std::vector<std::array<int64_t, 3>>{{2048, 768, 256},
                                           {2048, 256, 256},
                                           {2048, 1024, 256},
                                           {2048, 256, 1024},
                                           {8320, 576, 192},
                                           {8320, 192, 192},
                                           {8320, 768, 192},
                                           {8320, 192, 768},
                                           {1024, 2304, 768},
                                           {1024, 768, 768},
                                           {1024, 3072, 768},
                                           {1024, 768, 3072}}) {
    cases.push_back([=] { return linear_wgrad_case(rows, outputs, inputs); });
  }
  return cases;
}

}  // namespace gallop::benchmark
