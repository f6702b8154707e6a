#include "gallop/model/functional/attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Attention final : torch::autograd::Function<Attention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv_BT3HD,
                            const kernel::AttentionOptions& options) {
    const kernel::AttentionOutput output = kernel::attention(qkv_BT3HD, options);
    context->save_for_backward({qkv_BT3HD, output.y_BTHD, output.log_sums_BHT, options.rotation_TD,
                                options.position_ids_BT});
    context->saved_data["causal"] = options.causal;
    context->saved_data["scale"] = options.scale;
    return output.y_BTHD;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order("attention");
    const auto saved = context->get_saved_variables();
    const kernel::AttentionOptions options{.causal = context->saved_data["causal"].toBool(),
                                           .scale = context->saved_data["scale"].toDouble(),
                                           .rotation_TD = saved[3],
                                           .position_ids_BT = saved[4]};
    return {kernel::attention_backward(gradients[0], saved[0], {saved[1], saved[2]}, options),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor attention(const at::Tensor& qkv_BT3HD, const kernel::AttentionOptions& options) {
  return Attention::apply(qkv_BT3HD, options);
}

}  // namespace gallop::model::functional
