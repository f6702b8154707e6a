#include "gallop/model/exported/autocast_arguments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace gallop::model::exported {

namespace {

using torch::jit::Stack;

/// An operator that writes one tensor into another, argument 0.
struct Writer {
  std::string_view function;
  size_t source;  // Place of the argument.
};

constexpr std::array<Writer, 7> kWriters = {{{.function = "aten::index_add", .source = 3},
                                             {.function = "aten::index_copy", .source = 3},
                                             {.function = "aten::index_put", .source = 2},
                                             {.function = "aten::masked_scatter", .source = 2},
                                             {.function = "aten::scatter", .source = 3},
                                             {.function = "aten::scatter_add", .source = 3},
                                             {.function = "aten::scatter_reduce", .source = 3}}};

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

}  // namespace

void adjust_to_autocast(const Node& node, Stack& stack) {
  std::string_view name = node.function;
  const bool is_in_place = name.ends_with('_');
  if (is_in_place) name.remove_suffix(1);
  if (name == "aten::masked_fill") clamp_to_format(stack[0].toTensor(), stack[2]);
  for (const Writer& writer : kWriters) {
    if (writer.function == name) match_formats(stack[0], stack[writer.source], is_in_place);
  }
}

}  // namespace gallop::model::exported
