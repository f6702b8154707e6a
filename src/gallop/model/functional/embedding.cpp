#include "gallop/model/functional/embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/kernel/embedding.h"
#include "gallop/kernel/isa.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The residual stream is fp32 regardless of the tables' dtype; so are the sums of gradients.
at::Tensor in_fp32(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 ? tensor.to(at::kFloat) : tensor;
}

struct EmbeddingFunction : torch::autograd::Function<EmbeddingFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& weight,
                            const std::optional<at::Tensor>& positions, const at::Tensor& indices) {
    context->save_for_backward({indices});
    context->saved_data["rows"] = weight.size(0);
    context->saved_data["positions"] = positions ? positions->size(0) : 0;
    if (weight.scalar_type() == at::kFloat) {
      return kernel::embedding(indices, weight, positions.value_or(at::Tensor()));
    }
    auto y = in_fp32(kernel::embedding(indices, weight, {}));
    return positions ? y.add_(in_fp32(positions->narrow(0, 0, indices.size(-1)))) : y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("embedding");
    auto result = kernel::embedding_backward(
        gradients[0].contiguous(), context->get_saved_variables()[0],
        context->saved_data["rows"].toInt(), context->saved_data["positions"].toInt());
    return {result.weight, result.positions, {}};
  }
};

}  // namespace

TablePart part_of_table(const at::Tensor& indices, int64_t begin, int64_t rows, int64_t all_rows,
                        at::ScalarType type) {
  const at::Tensor own = indices.sub(begin);
  const at::Tensor is_here = own.ge(0).logical_and(own.lt(rows));
  const at::Tensor is_row = indices.ge(0).logical_and(indices.lt(all_rows));
  const at::Tensor factors =
      is_here.to(type).masked_fill(is_row.logical_not(), std::numeric_limits<double>::quiet_NaN());
  return {.indices = own.mul(is_here), .factors = factors.unsqueeze(-1)};
}

at::Tensor embedding(const at::Tensor& indices, const at::Tensor& weight,
                     const at::Tensor& positions) {
  if (kernel::kernels_enabled() && indices.is_cpu()) {
    const auto plain = indices.contiguous();
    if (kernel::takes_embedding(plain, weight, positions)) {
      return EmbeddingFunction::apply(
          weight, positions.defined() ? std::optional(positions) : std::nullopt, plain);
    }
  }
  const auto y = in_fp32(at::embedding(weight, indices));
  return positions.defined() ? y + in_fp32(positions.narrow(0, 0, indices.size(-1))) : y;
}

}  // namespace gallop::model::functional
