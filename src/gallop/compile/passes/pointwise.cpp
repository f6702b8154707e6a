#include "gallop/compile/passes/pointwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <c10/core/WrapDimMinimal.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/codegen/loop_values.h"

namespace gallop::compile::passes {

namespace {

// A call to lower: its tensors in the data type that LibTorch computes in, and its constants.
struct Call {
  LoopBuilder& b;
  const Node& node;
  std::span<const Value> x;
  Format format;     // Format of the computation: fp32, fp64.
  Format tensors;    // Format of the widest tensor.
  int64_t elements;  // Elements of the result.

  Value operator[](size_t i) const { return x[i]; }
  // The value of a scalar argument, which may be wrapped as a tensor.
  double number(size_t argument) const {
    const c10::IValue& value = node.arguments[argument].constant;
    if (value.isTensor()) return value.toTensor().item<double>();
    if (value.isBool()) return value.toBool() ? 1 : 0;
    return value.toScalar().toDouble();
  }
  double number_or(size_t argument, double otherwise) const {
    return node.arguments[argument].constant.isNone() ? otherwise : number(argument);
  }
  // The value in the data type of the tensors.
  Value rounded(Value value) const {
    return kind_of(tensors) == tensors ? value : b.cast(value, tensors);
  }
  // The argument as a value, be it a tensor or a scalar.
  Value value(size_t argument) const {
    if (node.arguments[argument].kind != Operand::Kind::kTensor) {
      return b.constant(number(argument), format);
    }
    size_t before = 0;
    for (size_t i = 0; i < argument; ++i) {
      before += node.arguments[i].kind == Operand::Kind::kTensor ? 1 : 0;
    }
    return x[before];
  }
};

using Lower = Value (*)(const Call& call);

template <Op kOp>
Value unary(const Call& call) {
  return call.b.apply(kOp, call[0]);
}
// Scalars in comparisons are first rounded to the tensor's data type, on a GPU too
// (scalar_value in LibTorch's CompareKernels.cu and Loops.cuh).
template <Op kOp>
Value comparison(const Call& call) {
  const Value a = call.rounded(call.value(0)), b = call.rounded(call.value(1));
  return call.b.apply(kOp, a, b);
}
template <Op kOp>
Value binary(const Call& call) {
  const Value a = call.value(0), b = call.value(1);
  return call.b.apply(kOp, a, b);
}
// a + alpha * b
template <Op kOp>
Value scaled(const Call& call) {
  const Value a = call.value(0);
  Value b = call.value(1);
  if (const double alpha = call.number_or(2, 1); alpha != 1)
    b = call.b.apply(Op::kMultiply, b, alpha);
  return call.b.apply(kOp, a, b);
}

// Operators that read their tensors by Call::value().
bool takes_number_as_tensor(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor", "aten::div.Tensor",
      "aten::maximum",    "aten::minimum",    "aten::eq.Tensor",  "aten::ne.Tensor",
      "aten::lt.Tensor",  "aten::le.Tensor",  "aten::gt.Tensor",  "aten::ge.Tensor"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_tanh(const Call& call, size_t argument) {
  return call.node.arguments[argument].constant.toStringRef() == "tanh";
}

const std::unordered_map<std::string_view, Lower> kTable = {
    {"aten::abs", unary<Op::kAbs>},
    {"aten::neg", unary<Op::kNegate>},
    {"aten::sign", unary<Op::kSign>},
    {"aten::floor", unary<Op::kFloor>},
    {"aten::ceil", unary<Op::kCeil>},
    {"aten::trunc", unary<Op::kTrunc>},
    {"aten::round", unary<Op::kRound>},
    {"aten::sqrt", unary<Op::kSqrt>},
    {"aten::rsqrt", unary<Op::kRsqrt>},
    {"aten::reciprocal", unary<Op::kReciprocal>},
    {"aten::exp", unary<Op::kExp>},
    {"aten::expm1", unary<Op::kExpm1>},
    {"aten::log", unary<Op::kLog>},
    {"aten::log1p", unary<Op::kLog1p>},
    {"aten::tanh", unary<Op::kTanh>},
    {"aten::sigmoid", unary<Op::kSigmoid>},
    {"aten::erf", unary<Op::kErf>},
    {"aten::relu", unary<Op::kRelu>},
    {"aten::_to_copy", [](const Call& call) { return call[0]; }},
    {"aten::add.Tensor", scaled<Op::kAdd>},
    {"aten::add.Scalar", scaled<Op::kAdd>},
    {"aten::sub.Tensor", scaled<Op::kSubtract>},
    {"aten::sub.Scalar", scaled<Op::kSubtract>},
    {"aten::mul.Tensor", binary<Op::kMultiply>},
    {"aten::mul.Scalar", binary<Op::kMultiply>},
    {"aten::div.Tensor", binary<Op::kDivide>},
    {"aten::div.Scalar", binary<Op::kDivide>},
    {"aten::maximum", binary<Op::kMaximum>},
    {"aten::minimum", binary<Op::kMinimum>},
    {"aten::clamp_min", binary<Op::kClampMin>},
    {"aten::clamp_max", binary<Op::kClampMax>},
    {"aten::eq.Tensor", comparison<Op::kEqual>},
    {"aten::eq.Scalar", comparison<Op::kEqual>},
    {"aten::ne.Tensor", comparison<Op::kNotEqual>},
    {"aten::ne.Scalar", comparison<Op::kNotEqual>},
    {"aten::lt.Tensor", comparison<Op::kLess>},
    {"aten::lt.Scalar", comparison<Op::kLess>},
    {"aten::le.Tensor", comparison<Op::kLessEqual>},
    {"aten::le.Scalar", comparison<Op::kLessEqual>},
    {"aten::gt.Tensor", comparison<Op::kGreater>},
    {"aten::gt.Scalar", comparison<Op::kGreater>},
    {"aten::ge.Tensor", comparison<Op::kGreaterEqual>},
    {"aten::ge.Scalar", comparison<Op::kGreaterEqual>},
    {"aten::rsub.Scalar",
     [](const Call& call) {
       Value less = call[0];
       if (const double alpha = call.number_or(2, 1); alpha != 1)
         less = call.b.apply(Op::kMultiply, less, alpha);
       return call.b.apply(Op::kSubtract, call.value(1), less);
     }},
    {"aten::where.self", [](const Call& call) { return call.b.select(call[0], call[1], call[2]); }},
    {"aten::masked_fill.Scalar",
     [](const Call& call) {
       const Value fill = call.b.constant(call.number(2), call.format);
       return call.b.select(call[1], fill, call[0]);
     }},
    {"aten::silu", [](const Call& call) { return silu(call.b, call[0]); }},
    {"aten::gelu",
     [](const Call& call) {
       return is_tanh(call, 1) ? gelu_tanh(call.b, call[0]) : gelu(call.b, call[0]);
     }},
    {"aten::leaky_relu",
     [](const Call& call) { return leaky_relu(call.b, call[0], call.number(1)); }},
    {"aten::elu",
     [](const Call& call) {
       return elu(call.b, call[0], call.number(1), call.number(2), call.number(3));
     }},
    {"aten::softplus",
     [](const Call& call) { return softplus(call.b, call[0], call.number(1), call.number(2)); }},
    {"aten::hardswish", [](const Call& call) { return hardswish(call.b, call[0]); }},
    {"aten::hardsigmoid", [](const Call& call) { return hardsigmoid(call.b, call[0]); }},
    {"aten::mish", [](const Call& call) { return mish(call.b, call[0]); }},
    {"aten::threshold",
     [](const Call& call) { return threshold(call.b, call[0], call.number(1), call.number(2)); }},
    {"aten::silu_backward",
     [](const Call& call) { return silu_gradient(call.b, call[0], call[1]); }},
    {"aten::gelu_backward",
     [](const Call& call) {
       return is_tanh(call, 2) ? gelu_tanh_gradient(call.b, call[0], call[1])
                               : gelu_gradient(call.b, call[0], call[1]);
     }},
    {"aten::threshold_backward",
     [](const Call& call) { return threshold_gradient(call.b, call[0], call[1], call.number(2)); }},
    {"aten::hardswish_backward",
     [](const Call& call) { return hardswish_gradient(call.b, call[0], call[1]); }},
    // dy * (1 - y) * y
    {"aten::sigmoid_backward",
     [](const Call& call) {
       const Value one = call.b.constant(1, call.format);
       const Value rest = call.b.apply(Op::kSubtract, one, call[1]);
       return call.b.apply(Op::kMultiply, call[0], call.b.apply(Op::kMultiply, rest, call[1]));
     }},
    // dy * (1 - y * y)
    {"aten::tanh_backward",
     [](const Call& call) {
       const Value one = call.b.constant(1, call.format);
       const Value square = call.b.apply(Op::kMultiply, call[1], call[1]);
       return call.b.apply(Op::kMultiply, call[0], call.b.apply(Op::kSubtract, one, square));
     }},
    // (a - b) * dy, times 2 for reduction "sum", and divided by the count for "mean".
    {"aten::mse_loss_backward",
     [](const Call& call) {
       const double share = call.number(3) == 1 ? 2.0 / static_cast<double>(call.elements) : 2;
       const Value off = call.b.apply(Op::kSubtract, call[1], call[2]);
       return call.b.apply(Op::kMultiply, call.b.apply(Op::kMultiply, off, share), call[0]);
     }},
    // a + value * b * c, and a + value * b / c
    {"aten::addcmul",
     [](const Call& call) {
       Value product = call.b.apply(Op::kMultiply, call[1], call[2]);
       product = call.b.apply(Op::kMultiply, product, call.number(3));
       return call.b.apply(Op::kAdd, call[0], product);
     }},
    {"aten::addcdiv",
     [](const Call& call) {
       Value quotient = call.b.apply(Op::kDivide, call[1], call[2]);
       quotient = call.b.apply(Op::kMultiply, quotient, call.number(3));
       return call.b.apply(Op::kAdd, call[0], quotient);
     }},
    {"aten::pow.Tensor_Scalar",
     [](const Call& call) {
       const double exponent = call.number(1);
       // Products of bf16 and fp16 are rounded, too.
       const auto square = [&] {
         return call.rounded(call.b.apply(Op::kMultiply, call[0], call[0]));
       };
       if (exponent == 2) return square();
       if (exponent == 3) return call.b.apply(Op::kMultiply, square(), call[0]);
       if (exponent == 0.5) return call.b.apply(Op::kSqrt, call[0]);
       if (exponent == -0.5) return call.b.apply(Op::kRsqrt, call[0]);
       if (exponent == -1) return call.b.apply(Op::kReciprocal, call[0]);
       if (exponent == -2) return call.b.apply(Op::kReciprocal, square());
       return call.b.apply(Op::kPower, call[0], exponent);
     }},
    {"aten::clone", [](const Call& call) { return call[0]; }},
};

// The exponents for which LibTorch has a formula of its own.
bool has_formula(double exponent) {
  constexpr std::array kExponents = {-2.0, -1.0, -0.5, 0.5, 2.0, 3.0};
  return std::find(kExponents.begin(), kExponents.end(), exponent) != kExponents.end();
}

bool is_copy(std::string_view op) { return op == "aten::_to_copy" || op == "aten::clone"; }

// Whether the argument may be a bool: one that selects between values, or that is copied.
bool takes_bool(std::string_view op, size_t argument) {
  return (op == "aten::where.self" && argument == 0) ||
         (op == "aten::masked_fill.Scalar" && argument == 1) || is_copy(op);
}

// The data type that LibTorch computes in: the widest of the tensors.
std::optional<at::ScalarType> computed_in(const Graph& graph, const Node& node) {
  std::optional<at::ScalarType> widest;
  for (const Operand& operand : node.arguments) {
    if (operand.kind != Operand::Kind::kTensor) continue;
    const at::ScalarType type = graph.views[operand.views[0]].dtype;
    if (type == c10::kBool) continue;
    if (!widest || c10::elementSize(type) > c10::elementSize(*widest)) widest = type;
  }
  return widest;
}

// Whether no type promotion is needed except to the widest tensor. Operators that LibTorch promotes
// otherwise (0-dim tensors, scalars of a wider kind, bf16 with fp16) are not fused.
bool formats_fit(const Graph& graph, const Node& node, std::string_view name) {
  const auto computed = computed_in(graph, node);
  const View& result = graph.views[node.results[0].views[0]];
  if (!computed || (result.dtype != *computed && result.dtype != c10::kBool)) return false;
  if (result.dtype == c10::kBool) {
    return std::all_of(node.arguments.begin(), node.arguments.end(), [&](const Operand& operand) {
      return operand.kind != Operand::Kind::kTensor ||
             graph.views[operand.views[0]].dtype == *computed;
    });
  }
  // On a GPU LibTorch rounds other exponents.
  const bool narrow = kind_of(*format_of(*computed)) != *format_of(*computed);
  if (name != "aten::pow.Tensor_Scalar" || !narrow || graph.buffers[result.buffer].device.is_cpu())
    return true;
  return has_formula(node.arguments[1].constant.toScalar().toDouble());
}

}  // namespace

bool is_loop_float(at::ScalarType type, c10::Device device) {
  return type == c10::kFloat || type == c10::kBFloat16 || type == c10::kDouble ||
         (type == c10::kHalf && device.is_cuda());
}

std::optional<Format> format_of(at::ScalarType type) {
  switch (type) {
    case c10::kFloat: return Format::kFp32;
    case c10::kBFloat16: return Format::kBf16;
    case c10::kHalf: return Format::kFp16;
    case c10::kDouble: return Format::kFp64;
    case c10::kBool: return Format::kBool;
    case c10::kInt: return Format::kInt32;
    case c10::kLong: return Format::kInt64;
    default: return std::nullopt;
  }
}

bool is_pointwise(const Graph& graph, const Node& node) {
  const std::string name = name_of(node.op);
  if (!kTable.contains(name) || node.results.size() != 1 || node.results[0].views.size() != 1 ||
      node.results[0].views[0] == kNone) {
    return false;
  }
  const View& result = graph.views[node.results[0].views[0]];
  const at::Device device = graph.buffers[result.buffer].device;
  // On a CPU LibTorch's copies are as fast.
  if (name == "aten::clone" && !device.is_cuda()) return false;
  if (!(device.is_cpu() || device.is_cuda()) || result.numel() == 0 ||
      !(is_loop_float(result.dtype, device) || result.dtype == c10::kBool)) {
    return false;
  }
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const Operand& operand = node.arguments[i];
    if (operand.kind == Operand::Kind::kConstant) continue;
    if (operand.kind != Operand::Kind::kTensor || operand.views[0] == kNone) return false;
    const View& view = graph.views[operand.views[0]];
    const bool fits =
        is_loop_float(view.dtype, device) || (view.dtype == c10::kBool && takes_bool(name, i));
    if (!fits || graph.buffers[view.buffer].device != device) return false;
  }
  // Rejects complex or very large constants, those that are not numbers, and numbers in place of
  // tensors that an operator selects by their place.
  for (const Operand& operand : node.arguments) {
    if (operand.kind == Operand::Kind::kConstant && operand.constant.isTensor() &&
        (!takes_number_as_tensor(name) ||
         c10::isComplexType(operand.constant.toTensor().scalar_type()))) {
      return false;
    }
    if (operand.kind == Operand::Kind::kConstant && operand.constant.isComplexDouble())
      return false;
  }
  if (is_copy(name)) return true;
  // Rejects a mean whose first tensor is broadcast to another.
  if (name == "aten::mse_loss_backward" &&
      graph.views[node.arguments[1].views[0]].sizes != result.sizes) {
    return false;
  }
  return formats_fit(graph, node, name);
}

bool is_join(const Graph& graph, const Node& node) {
  constexpr size_t kMostParts = 8;
  // Asked of every node again and again, so before its name is made.
  if (node.arguments.empty() || node.arguments[0].kind != Operand::Kind::kTensors) return false;
  const std::string name = name_of(node.op);
  if (name != "aten::cat" && name != "aten::stack") return false;
  const auto& parts = node.arguments[0].views;
  const ViewId whole = node.results[0].views[0];
  if (parts.size() < 2 || parts.size() > kMostParts || whole == kNone) return false;
  const View& result = graph.views[whole];
  const c10::Device device = graph.buffers[result.buffer].device;
  if (!device.is_cuda() || !is_loop_float(result.dtype, device) || result.numel() == 0) {
    return false;
  }
  return std::all_of(parts.begin(), parts.end(), [&](ViewId part) {
    return part != kNone && graph.views[part].sizes == graph.views[parts[0]].sizes &&
           graph.views[part].dtype == result.dtype &&
           graph.buffers[graph.views[part].buffer].device == device;
  });
}

View part_of_result(const Graph& graph, const Node& node, size_t number) {
  View view = graph.views[node.results[0].views[0]];
  if (!is_join(graph, node)) return view;
  const bool stacks = name_of(node.op) == "aten::stack";
  const int64_t dim = c10::maybe_wrap_dim(node.arguments[1].constant.toInt(),
                                          static_cast<int64_t>(view.sizes.size()));
  const auto at = static_cast<std::ptrdiff_t>(dim);
  const int64_t size =
      stacks ? 1 : graph.views[node.arguments[0].views[0]].sizes[static_cast<size_t>(dim)];
  view.offset += static_cast<int64_t>(number) * size * view.strides[static_cast<size_t>(dim)];
  view.sizes[static_cast<size_t>(dim)] = size;
  if (stacks) {
    view.sizes.erase(view.sizes.begin() + at);
    view.strides.erase(view.strides.begin() + at);
  }
  return view;
}

std::vector<ViewId> tensors_of(const Node& node) {
  std::vector<ViewId> tensors;
  for (const Operand& operand : node.arguments) {
    std::copy_if(operand.views.begin(), operand.views.end(), std::back_inserter(tensors),
                 [](ViewId view) { return view != kNone; });
  }
  return tensors;
}

Value lower(LoopBuilder& builder, const Graph& graph, const Node& node,
            std::span<const Value> tensors) {
  const at::ScalarType result = graph.views[node.results[0].views[0]].dtype;
  const auto computed = computed_in(graph, node);
  const Format format = computed == c10::kDouble ? Format::kFp64 : Format::kFp32;
  std::vector<Value> arguments;
  const std::string name = name_of(node.op);
  for (const Value tensor : tensors) {
    const bool is_mask = builder.kind(tensor) == Format::kBool;
    arguments.push_back(is_mask ? tensor : builder.cast(tensor, format));
  }
  const Call call{.b = builder,
                  .node = node,
                  .x = arguments,
                  .format = format,
                  .tensors = computed ? *format_of(*computed) : format,
                  .elements = graph.views[node.results[0].views[0]].numel()};
  const Value value = is_copy(name) ? tensors[0] : kTable.at(name)(call);
  return builder.cast(value, *format_of(result));
}

}  // namespace gallop::compile::passes
