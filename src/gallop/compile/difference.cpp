#include "gallop/compile/difference.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <ATen/ops/equal.h>
#include <fmt/format.h>

namespace gallop::compile {

namespace {

// Whether the values are bit-identical, or both are NaN.
bool is_same_number(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

bool is_same_tensor(const at::Tensor& a, const at::Tensor& b) {
  if (a.dtype() != b.dtype() || a.sizes() != b.sizes()) return false;
  if (a.numel() == 1 && a.is_floating_point()) {
    return is_same_number(a.item<double>(), b.item<double>());
  }
  return at::equal(a, b);
}

}  // namespace

bool is_same(const c10::IValue& a, const c10::IValue& b) {
  if (a.tagKind() != b.tagKind()) return false;
  if (a.isTensor()) return is_same_tensor(a.toTensor(), b.toTensor());
  if (a.isGenerator()) return a.toGenerator() == b.toGenerator();
  if (a.isDouble()) return is_same_number(a.toDouble(), b.toDouble());
  if (a.isList()) {
    const auto x = a.toListRef(), y = b.toListRef();
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const c10::IValue& p, const c10::IValue& q) { return is_same(p, q); });
  }
  return a == b;
}

namespace {

std::string print(const c10::IValue& value) {
  if (value.isTensor()) return print(c10::IValue(value.toTensor().item()));
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string difference(const Graph& graph, size_t number, const Node& b) {
  const Node& a = graph.nodes[number];
  const auto& schema = a.op.schema();
  for (size_t i = 0; i < a.arguments.size(); ++i) {
    const Operand &x = a.arguments[i], &y = b.arguments[i];
    const std::string& name = schema.arguments()[i].name();
    if (x.kind != y.kind || x.views != y.views) {
      return fmt::format("{} (node {}) gets a different tensor as '{}'{}", name_of(a.op), number,
                         name, source_of(graph, a));
    }
    if (!is_same(x.constant, y.constant)) {
      return fmt::format("{} (node {}) is given '{}' {} and then {}{}", name_of(a.op), number, name,
                         print(x.constant), print(y.constant), source_of(graph, a));
    }
  }
  return {};
}

}  // namespace

std::string difference(const Graph& a, const Graph& b) {
  for (size_t i = 0; i < std::min(a.nodes.size(), b.nodes.size()); ++i) {
    if (a.nodes[i].op.operator_name() != b.nodes[i].op.operator_name()) {
      return fmt::format("node {} is {} and then {}{}", i, name_of(a.nodes[i].op),
                         name_of(b.nodes[i].op), source_of(a, a.nodes[i]));
    }
    if (std::string found = difference(a, i, b.nodes[i]); !found.empty()) return found;
  }
  if (a.nodes.size() != b.nodes.size()) {
    return fmt::format("it has {} calls and then {}", a.nodes.size(), b.nodes.size());
  }
  if (a.views != b.views || a.inputs != b.inputs || a.outputs != b.outputs) {
    return "sizes or memory layouts differ";
  }
  for (size_t i = 0; i < a.buffers.size(); ++i) {
    const Buffer &x = a.buffers[i], &y = b.buffers[i];
    // Arguments may be views of memory of any size.
    if (x.kind != y.kind || (x.kind != Buffer::Kind::kInput && x.bytes != y.bytes)) {
      return "tensors of different kinds or sizes are used";
    }
    if (x.kind == Buffer::Kind::kState && !x.state.is_alias_of(y.state)) {
      return fmt::format("a tensor of {} bytes, created outside of operators, differs at each call",
                         x.bytes);
    }
  }
  return {};
}

}  // namespace gallop::compile
