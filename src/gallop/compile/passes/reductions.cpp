#include "gallop/compile/passes/reductions.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "gallop/compile/codegen/loop_values.h"
#include "gallop/compile/passes/pointwise.h"

namespace gallop::compile::passes {

namespace {

// A call to lower, with its tensors in the data type that LibTorch computes in.
struct Call {
  LoopBuilder& b;
  const Node& node;
  std::span<const Value> x;
  const ReductionOps& ops;
  double count;  // Number of elements that are reduced to one.

  Value sum(Value value) const { return b.apply(ops.sum, value); }
  Value mean(Value value) const { return b.apply(Op::kDivide, sum(value), count); }
};

Value largest(const Call& call) { return call.b.apply(call.ops.max, call.x[0]); }

Value softmax(const Call& call) {
  const Value off = call.b.apply(Op::kSubtract, call.x[0], largest(call));
  const Value e = call.b.apply(Op::kExp, off);
  return call.b.apply(Op::kDivide, e, call.sum(e));
}

Value log_softmax(const Call& call) {
  const Value off = call.b.apply(Op::kSubtract, call.x[0], largest(call));
  const Value sum = call.sum(call.b.apply(Op::kExp, off));
  return call.b.apply(Op::kSubtract, off, call.b.apply(Op::kLog, sum));
}

// y (dy - sum of dy y)
Value softmax_gradient(const Call& call) {
  const Value dy = call.x[0], y = call.x[1];
  const Value sum = call.sum(call.b.apply(Op::kMultiply, dy, y));
  return call.b.apply(Op::kMultiply, y, call.b.apply(Op::kSubtract, dy, sum));
}

// dy - e^y (sum of dy)
Value log_softmax_gradient(const Call& call) {
  const Value dy = call.x[0], y = call.x[1];
  const Value share = call.b.apply(Op::kMultiply, call.b.apply(Op::kExp, y), call.sum(dy));
  return call.b.apply(Op::kSubtract, dy, share);
}

Value mse_loss(const Call& call) {
  const Value off = call.b.apply(Op::kSubtract, call.x[0], call.x[1]);
  const Value square = call.b.apply(Op::kMultiply, off, off);
  const bool is_mean = call.node.arguments[2].constant.toInt() == 1;
  return is_mean ? call.mean(square) : call.sum(square);
}

enum class Over : uint8_t { kAll, kList, kSpread };

struct Entry {
  Over over;
  size_t dims;  // Index of the argument with the dimensions.
  size_t tensors;
  Value (*lower)(const Call& call);
};

const std::unordered_map<std::string_view, Entry> kTable = {
    {"aten::sum", {Over::kAll, 0, 1, [](const Call& call) { return call.sum(call.x[0]); }}},
    {"aten::sum.dim_IntList",
     {Over::kList, 1, 1, [](const Call& call) { return call.sum(call.x[0]); }}},
    {"aten::mean", {Over::kAll, 0, 1, [](const Call& call) { return call.mean(call.x[0]); }}},
    {"aten::mean.dim", {Over::kList, 1, 1, [](const Call& call) { return call.mean(call.x[0]); }}},
    {"aten::amax", {Over::kList, 1, 1, largest}},
    {"aten::amin",
     {Over::kList, 1, 1, [](const Call& call) { return call.b.apply(call.ops.min, call.x[0]); }}},
    {"aten::mse_loss", {Over::kAll, 0, 2, mse_loss}},
    {"aten::_softmax", {Over::kSpread, 1, 1, softmax}},
    {"aten::_log_softmax", {Over::kSpread, 1, 1, log_softmax}},
    {"aten::_softmax_backward_data", {Over::kSpread, 2, 2, softmax_gradient}},
    {"aten::_log_softmax_backward_data", {Over::kSpread, 2, 2, log_softmax_gradient}},
};

// Whether the data types are supported: sums of integers are integers; a requested type may be
// wider, as LibTorch converts to it first.
bool formats_fit(std::string_view op, at::ScalarType from, at::ScalarType to, c10::Device device) {
  if (op.starts_with("aten::sum") && to == c10::kLong) {
    return from == c10::kBool || from == c10::kInt || from == c10::kLong;
  }
  if (!is_loop_float(from, device) || !is_loop_float(to, device)) return false;
  if (op == "aten::amax" || op == "aten::amin") return from == to;
  return from == to || c10::elementSize(from) < c10::elementSize(to);
}

// The dimensions that an argument names: all if it names none.
std::vector<bool> named_dims(const c10::IValue& value, size_t count) {
  std::vector<int64_t> list;
  if (value.isInt()) list = {value.toInt()};
  if (value.isIntList()) list = value.toIntVector();
  std::vector<bool> named(count, list.empty());
  for (const int64_t dim : list) {
    named[static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(count) : dim)] = true;
  }
  return named;
}

bool tensors_fit(const Graph& graph, const Node& node, std::string_view op, const Entry& entry) {
  const View& result = graph.views[node.results[0].views[0]];
  const at::Device device = graph.buffers[result.buffer].device;
  if (!(device.is_cpu() || device.is_cuda()) || result.numel() == 0) return false;
  const auto& sizes = graph.views[node.arguments[0].views[0]].sizes;
  for (size_t i = 0; i < entry.tensors; ++i) {
    const Operand& operand = node.arguments[i];
    if (operand.kind != Operand::Kind::kTensor || operand.views[0] == kNone) return false;
    const View& view = graph.views[operand.views[0]];
    if (graph.buffers[view.buffer].device != device || view.numel() == 0 || view.sizes != sizes) {
      return false;
    }
    if (!formats_fit(op, view.dtype, result.dtype, device)) return false;
  }
  return true;
}

}  // namespace

std::optional<Reduction> reduction_of(const Graph& graph, const Node& node) {
  const auto found = kTable.find(name_of(node.op));
  if (found == kTable.end() || node.results.size() != 1 || node.results[0].views.size() != 1 ||
      node.results[0].views[0] == kNone || node.arguments[0].kind != Operand::Kind::kTensor ||
      node.arguments[0].views[0] == kNone) {
    return std::nullopt;
  }
  const Entry& entry = found->second;
  if (!tensors_fit(graph, node, found->first, entry)) return std::nullopt;
  if (found->first == "aten::mse_loss" && node.arguments[2].constant.toInt() == 0) {
    return std::nullopt;
  }
  Reduction reduction{.sizes = graph.views[node.arguments[0].views[0]].sizes};
  if (reduction.sizes.empty()) return std::nullopt;
  reduction.reduced = entry.over == Over::kAll
                          ? std::vector<bool>(reduction.sizes.size(), true)
                          : named_dims(node.arguments[entry.dims].constant, reduction.sizes.size());
  reduction.is_spread = entry.over == Over::kSpread;
  for (size_t i = 0; i < reduction.sizes.size(); ++i) {
    if (reduction.reduced[i] && reduction.sizes[i] > 1) return reduction;
  }
  return std::nullopt;
}

Value lower_reduction(LoopBuilder& builder, const Graph& graph, const Node& node,
                      std::span<const Value> tensors, const ReductionOps& ops) {
  const Format result = *format_of(graph.views[node.results[0].views[0]].dtype);
  const Format computed = kind_of(result);
  std::vector<Value> arguments;
  for (const Value tensor : tensors) arguments.push_back(builder.cast(tensor, computed));
  const Reduction reduction = *reduction_of(graph, node);
  double count = 1;
  for (size_t i = 0; i < reduction.sizes.size(); ++i) {
    if (reduction.reduced[i]) count *= static_cast<double>(reduction.sizes[i]);
  }
  const Call call{.b = builder, .node = node, .x = arguments, .ops = ops, .count = count};
  return builder.cast(kTable.at(name_of(node.op)).lower(call), result);
}

}  // namespace gallop::compile::passes
