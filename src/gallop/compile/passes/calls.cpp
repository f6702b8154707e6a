#include "gallop/compile/passes/calls.h"

#include <utility>

namespace gallop::compile::passes {

namespace {

template <typename T>
Operand constant(const T& value) {
  return Operand::of(c10::IValue(value));
}
Operand number(double value) { return constant(c10::Scalar(value)); }
Operand none() { return constant(c10::IValue()); }
Operand format(at::ScalarType type) { return constant(static_cast<int64_t>(type)); }
Operand tensor(ViewId view) { return Operand::of(view); }

c10::OperatorHandle operator_of(const char* op, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(op, overload);
}

}  // namespace

Calls::Calls(Matcher& matcher, int64_t node) : matcher_(matcher), node_(node) {
  change_.removed.push_back(node);
}

std::optional<Rewrite> Calls::finish() && {
  return failed_ ? std::nullopt : std::optional(std::move(change_));
}

bool Calls::place(View& made, ViewId into) {
  Graph& graph = matcher_.graph();
  if (into == kNone) {
    Buffer buffer;
    buffer.bytes = made.numel() * static_cast<int64_t>(c10::elementSize(made.dtype));
    buffer.device = graph.buffer_of(matcher_.argument(node_, 0)).device;
    made.buffer = static_cast<BufferId>(graph.buffers.size());
    graph.buffers.push_back(std::move(buffer));
    return true;
  }
  const View& wanted = matcher_.view(into);
  if (wanted.dtype != made.dtype || made.offset != 0 || wanted.offset != 0) return false;
  const bool same = wanted.sizes == made.sizes;
  if (same ? !is_laid_out_alike(wanted, made)
           : wanted.numel() != made.numel() || !wanted.is_dense()) {
    return false;
  }
  if (same) {
    made = wanted;
  } else {
    made.buffer = wanted.buffer;
  }
  return true;
}

ViewId Calls::call(const char* op, const char* overload, std::vector<Operand> arguments,
                   ViewId into) {
  if (failed_) return 0;
  Node node{.op = operator_of(op, overload), .arguments = std::move(arguments), .results = {}};
  const auto layouts = result_layouts(matcher_.graph(), node);
  View made = layouts.empty() ? View() : layouts[0];
  if (layouts.size() != 1 || !place(made, into)) {
    failed_ = true;
    return 0;
  }
  const ViewId result = matcher_.intern(made);
  node.results = {tensor(result)};
  change_.added.emplace_back(node_, std::move(node));
  return result;
}

ViewId Calls::add(ViewId a, ViewId b, ViewId into) {
  return call("aten::add", "Tensor", {tensor(a), tensor(b), number(1)}, into);
}
ViewId Calls::add(ViewId a, double b) {
  return call("aten::add", "Scalar", {tensor(a), number(b), number(1)});
}
ViewId Calls::subtract(ViewId a, ViewId b) {
  return call("aten::sub", "Tensor", {tensor(a), tensor(b), number(1)});
}
ViewId Calls::multiply(ViewId a, ViewId b) {
  return call("aten::mul", "Tensor", {tensor(a), tensor(b)});
}
ViewId Calls::multiply(ViewId a, double b) {
  return call("aten::mul", "Scalar", {tensor(a), number(b)});
}
ViewId Calls::at_least(ViewId a, double b) {
  return call("aten::clamp_min", "", {tensor(a), number(b)});
}
ViewId Calls::rsqrt(ViewId a, ViewId into) { return call("aten::rsqrt", "", {tensor(a)}, into); }

ViewId Calls::cast(ViewId a, at::ScalarType type, ViewId into) {
  return call("aten::_to_copy", "",
              {tensor(a), format(type), none(), none(), none(), constant(false), none()}, into);
}

ViewId Calls::joined(const std::vector<ViewId>& parts, int64_t dim, bool stacks, ViewId into) {
  Operand list{.kind = Operand::Kind::kTensors, .constant = {}, .views = parts};
  return call(stacks ? "aten::stack" : "aten::cat", "", {std::move(list), constant(dim)}, into);
}

ViewId Calls::mean(ViewId a, const std::vector<int64_t>& dims, ViewId into) {
  return call("aten::mean", "dim", {tensor(a), constant(dims), constant(true), format(c10::kFloat)},
              into);
}

ViewId Calls::sum(ViewId a, const std::vector<int64_t>& dims, bool keep, ViewId into) {
  return call("aten::sum", "dim_IntList",
              {tensor(a), constant(dims), constant(keep), format(c10::kFloat)}, into);
}

void Calls::move_towards(std::initializer_list<std::pair<ViewId, ViewId>> pairs, double share) {
  Operand to{.kind = Operand::Kind::kTensors, .constant = {}, .views = {}}, from = to;
  for (const auto& [a, b] : pairs) {
    to.views.push_back(a);
    from.views.push_back(b);
  }
  change_.added.emplace_back(node_, Node{.op = operator_of("aten::_foreach_lerp_", "Scalar"),
                                         .arguments = {to, from, number(share)},
                                         .results = {}});
}

}  // namespace gallop::compile::passes
