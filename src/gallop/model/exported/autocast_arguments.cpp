#include "gallop/model/exported/autocast_arguments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include <ATen/autocast_mode.h>
#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "gallop/kernel/isa.h"

namespace gallop::model::exported {

namespace {

using torch::jit::Stack;

using Kind = AutocastRule::Kind;

/// The rule of an operator and of its form in place.
struct Entry {
  std::string_view function;
  Kind kind;
  size_t source;
};

constexpr std::array<Entry, 9> kEntries = {{{"aten::masked_fill", Kind::kClampConstant, 2},
                                            {"aten::lstm", Kind::kCastAll, 0},
                                            {"aten::index_add", Kind::kMatchFormats, 3},
                                            {"aten::index_copy", Kind::kMatchFormats, 3},
                                            {"aten::index_put", Kind::kMatchFormats, 2},
                                            {"aten::masked_scatter", Kind::kMatchFormats, 2},
                                            {"aten::scatter", Kind::kMatchFormats, 3},
                                            {"aten::scatter_add", Kind::kMatchFormats, 3},
                                            {"aten::scatter_reduce", Kind::kMatchFormats, 3}}};

// Sets a constant beyond the range of a tensor's format to its limit, such as the lowest fp32
// number for a tensor of bf16 or fp16.
void clamp_to_format(const at::Tensor& tensor, c10::IValue& value) {
  const auto type = tensor.scalar_type();
  if (!value.isDouble() || (type != c10::kHalf && type != c10::kBFloat16)) return;
  const double limit = type == c10::kHalf
                           ? static_cast<double>(std::numeric_limits<c10::Half>::max())
                           : static_cast<double>(std::numeric_limits<c10::BFloat16>::max());
  const double number = value.toDouble();
  if (std::isfinite(number)) value = std::clamp(number, -limit, limit);
}

void match_formats(c10::IValue& target, c10::IValue& source, bool is_in_place) {
  if (!target.isTensor() || !source.isTensor()) return;
  const at::Tensor into = target.toTensor(), from = source.toTensor();
  if (!into.is_floating_point() || !from.is_floating_point()) return;
  if (into.scalar_type() == from.scalar_type()) return;
  const c10::ScalarType format =
      is_in_place ? into.scalar_type() : c10::promoteTypes(into.scalar_type(), from.scalar_type());
  target = into.to(format);
  source = from.to(format);
}

at::Tensor in_format(const at::Tensor& tensor, c10::ScalarType format) {
  return tensor.is_floating_point() ? tensor.to(format) : tensor;
}

// oneDNN computes LSTMs in 16 bits with AVX-512 only (mkldnn_bf16_device_check() in ATen).
void cast_all(Stack& stack) {
  if (!stack[0].toTensor().is_cpu() || !at::autocast::is_autocast_enabled(at::kCPU)) return;
  if (kernel::has(kernel::Isa::kAvx512)) return;
  const c10::ScalarType format = at::autocast::get_autocast_dtype(at::kCPU);
  for (c10::IValue& value : stack) {
    if (value.isTensor()) {
      value = in_format(value.toTensor(), format);
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> tensors = value.toTensorVector();
      for (at::Tensor& tensor : tensors) tensor = in_format(tensor, format);
      value = tensors;
    }
  }
}

}  // namespace

std::optional<AutocastRule> find_autocast_rule(const Node& node) {
  std::string_view name = node.function;
  const bool is_in_place = name.ends_with('_');
  if (is_in_place) name.remove_suffix(1);
  for (const Entry& entry : kEntries) {
    if (entry.function == name) return AutocastRule{entry.kind, entry.source, is_in_place};
  }
  return std::nullopt;
}

void adjust_to_autocast(const AutocastRule& rule, Stack& stack) {
  switch (rule.kind) {
    case Kind::kClampConstant: clamp_to_format(stack[0].toTensor(), stack[rule.source]); break;
    case Kind::kMatchFormats: match_formats(stack[0], stack[rule.source], rule.is_in_place); break;
    case Kind::kCastAll: cast_all(stack); break;
  }
}

}  // namespace gallop::model::exported
