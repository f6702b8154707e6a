#include "gallop/compile/recordable.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace gallop::compile {

namespace {

using torch::jit::Stack;

// Operators that change a tensor's storage, not only its contents.
constexpr std::array<std::string_view, 4> kChangesStorage = {"aten::set_", "aten::resize_",
                                                             "aten::resize_as_", "aten::set_data"};
// Operators whose scalar results depend on sizes alone.
constexpr std::array<std::string_view, 3> kAsksForSizes = {
    "aten::_fused_sdp_choice", "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_flash_attention"};

// On a GPU they wait for the ranges of rows, which a captured step cannot.
constexpr std::array<std::string_view, 3> kReadsOnGpu = {
    "gallop::grouped_linear", "gallop::grouped_linear_dgrad", "gallop::grouped_linear_wgrad"};

template <typename List>
bool is_one_of(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Whether aten::index has integer indices only, no masks: then the result's size is known.
bool has_places_only(const c10::OperatorHandle& op, const Stack& stack) {
  if (op.schema().name() != "aten::index" || op.schema().arguments().size() != 2) return false;
  const auto places = stack.back().toListRef();
  return std::all_of(places.begin(), places.end(), [](const c10::IValue& place) {
    if (!place.isTensor() || !place.toTensor().defined()) return true;
    const auto type = place.toTensor().scalar_type();
    return type != c10::kBool && type != c10::kByte;
  });
}

bool reads_on_host(const c10::OperatorHandle& op) {
  if (op.hasTag(at::Tag::data_dependent_output)) return true;
  if (asks_for_sizes(op)) return false;
  const auto& returns = op.schema().returns();
  return std::any_of(returns.begin(), returns.end(), [](const c10::Argument& result) {
    const auto kind = result.type()->kind();
    return kind == c10::TypeKind::NumberType || kind == c10::TypeKind::BoolType ||
           kind == c10::TypeKind::FloatType || (kind == c10::TypeKind::IntType);
  });
}

}  // namespace

std::string why_not_recorded(const c10::OperatorHandle& op, const Stack& stack) {
  if (is_one_of(kChangesStorage, op.schema().name())) return "changes the memory of a tensor";
  if (op.hasTag(at::Tag::dynamic_output_shape) && !has_places_only(op, stack)) {
    return "has results whose sizes depend on the data";
  }
  if (is_one_of(kReadsOnGpu, op.schema().name()) && stack.back().toTensor().is_cuda()) {
    return "reads on the host how many tokens an expert gets";
  }
  if (reads_on_host(op)) return "reads a value on the host";
  return {};
}

std::string unusual(const at::Tensor& tensor) {
  if (tensor.layout() != c10::kStrided) return "is not strided";
  if (tensor.is_quantized()) return "is quantized";
  if (tensor.is_nested()) return "is nested";
  if (tensor.is_neg()) return "is a lazy negative";
  if (!tensor.has_storage()) return "has no storage";
  return {};
}

bool asks_for_sizes(const c10::OperatorHandle& op) {
  return is_one_of(kAsksForSizes, op.schema().name());
}

bool changes_only_sizes(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::inplace_view) && !is_one_of(kChangesStorage, op.schema().name());
}

}  // namespace gallop::compile
