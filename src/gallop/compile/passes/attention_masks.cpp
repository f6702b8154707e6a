#include <optional>
#include <string_view>

#include "gallop/compile/passes/passes.h"
#include "gallop/compile/tensor_in.h"
#include "gallop/kernel/attention_mask.h"

namespace gallop::compile::passes {

namespace {

size_t place_of(const c10::FunctionSchema& schema, std::string_view name) {
  return static_cast<size_t>(schema.argumentIndexWithName(name).value());
}

bool is_attention(const Node& node) {
  const std::string_view name = node.op.schema().name();
  return name.starts_with("aten::_scaled_dot_product_flash_attention_for_cpu") ||
         name.starts_with("aten::_scaled_dot_product_efficient_attention");
}

// Whether a mask hides from each query the keys behind it (true) or nothing (false); nothing for
// other masks, and for those that are not constant.
std::optional<bool> is_causal(const Graph& graph, ViewId mask, int64_t queries, int64_t keys) {
  const View& view = graph.views[mask];
  const Buffer& buffer = graph.buffers[view.buffer];
  if (!buffer.is_constant) return std::nullopt;
  const auto hidden = kernel::masked_keys(
      tensor_in(buffer.state, view.dtype, view.sizes, view.strides, view.offset), queries, keys);
  return hidden ? std::optional(*hidden == kernel::MaskedKeys::kLater) : std::nullopt;
}

}  // namespace

void attention_masks(Graph& graph) {
  for (Node& node : graph.nodes) {
    if (!is_attention(node)) continue;
    const c10::FunctionSchema& schema = node.op.schema();
    const bool is_bias = !schema.argumentIndexWithName("attn_mask");
    const size_t place = place_of(schema, is_bias ? "attn_bias" : "attn_mask");
    Operand& mask = node.arguments.at(place);
    Operand& causal = node.arguments.at(place_of(schema, "is_causal"));
    if (mask.kind != Operand::Kind::kTensor || mask.views[0] == kNone) continue;
    if (causal.constant.toBool()) continue;
    const auto size = [&](std::string_view name) {
      const View& view = graph.views[node.arguments.at(place_of(schema, name)).views[0]];
      return view.sizes.at(view.sizes.size() - 2);
    };
    const auto found = is_causal(graph, mask.views[0], size("query"), size("key"));
    if (!found) continue;
    causal = Operand::of(c10::IValue(*found));
    // The gradient on a GPU takes a tensor that may be undefined.
    const bool is_optional =
        schema.arguments()[place].type()->kind() == c10::TypeKind::OptionalType;
    mask = Operand::of(is_optional ? c10::IValue() : c10::IValue(at::Tensor()));
  }
}

}  // namespace gallop::compile::passes
