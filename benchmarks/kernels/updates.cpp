#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "cases.h"
#include "gallop/kernel/update.h"

namespace gallop::benchmark {

namespace {

// One update by AdamW of `count` matrices.
Case adamw_case(int64_t count, int64_t rows, int64_t columns) {
  std::vector<at::Tensor> parameters, gradients, first, second, steps;
  for (int64_t i = 0; i < count; ++i) {
    parameters.push_back(at::randn({rows, columns}));
    gradients.push_back(at::randn({rows, columns}));
    first.push_back(at::zeros({rows, columns}));
    second.push_back(at::zeros({rows, columns}));
    steps.push_back(at::ones({}));
  }
  Case result{.name = fmt::format("adamw/fp32/{}x{}x{}", count, rows, columns)};
  result.bytes = 7 * static_cast<double>(count) * bytes_of(parameters[0]);
  result.forms.push_back(
      {"gallop", [=] {
         std::vector<kernel::UpdateTensor> tensors;
         for (size_t i = 0; i < parameters.size(); ++i) {
           tensors.push_back(
               {.parameter = parameters[i].mutable_data_ptr<float>(),
                .gradient = gradients[i].const_data_ptr<float>(),
                .states = {first[i].mutable_data_ptr<float>(), second[i].mutable_data_ptr<float>()},
                .size = rows * columns,
                .factors = {0.1F, 0.999F, 0.001F, 1e-8F, 0.99999F, 1e-3F, 1}});
         }
         kernel::update(kernel::update_rule("adamw"), tensors);
       }});
  result.forms.push_back({"aten", [=] {
                            at::_fused_adamw_(parameters, gradients, first, second, {}, steps, 1e-3,
                                              0.9, 0.999, 0.01, 1e-8, false, false);
                          }});
  return result;
}

}  // namespace

std::vector<MakeCase> update_cases() {
  std::vector<MakeCase> cases;
  cases.push_back([] { return adamw_case(4, 256, 256); });
  cases.push_back([] { return adamw_case(24, 256, 1024); });
  cases.push_back([] { return adamw_case(48, 768, 3072); });
  return cases;
}

}  // namespace gallop::benchmark
