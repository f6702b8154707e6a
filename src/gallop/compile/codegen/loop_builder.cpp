#include "gallop/compile/codegen/loop_builder.h"

#include <bit>

#include "gallop/base/error.h"
#include "gallop/compile/codegen/op_traits.h"

namespace gallop::compile {

namespace {

// Compares bits, since NaN must equal NaN and 0 must not equal -0.
bool is_same(const Expression& a, const Expression& b) {
  return a.op == b.op && a.arguments == b.arguments && a.index == b.index &&
         std::bit_cast<uint64_t>(a.number) == std::bit_cast<uint64_t>(b.number) &&
         a.format == b.format;
}

[[noreturn]] void fail() {
  throw InternalError("loop builder: a value that is not of this program");
}

}  // namespace

LoopBuilder::LoopBuilder(std::vector<int64_t> sizes, int32_t row_dims) {
  program_.sizes = std::move(sizes);
  program_.row_dims = row_dims;
}

Value LoopBuilder::add(Expression expression) {
  auto& list = program_.expressions;
  for (int i = 0; i < traits_of(expression.op).arity; ++i) {
    const int32_t argument = expression.arguments[static_cast<size_t>(i)];
    if (argument < 0 || static_cast<size_t>(argument) >= list.size()) fail();
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (is_same(list[i], expression)) return {static_cast<int32_t>(i)};
  }
  list.push_back(expression);
  return {static_cast<int32_t>(list.size() - 1)};
}

Value LoopBuilder::input(Format format, std::vector<int64_t> strides) {
  program_.inputs.push_back({.format = format, .strides = std::move(strides)});
  return add({.op = Op::kInput, .index = static_cast<int32_t>(program_.inputs.size() - 1)});
}

Value LoopBuilder::constant(double number, Format format) {
  return add({.op = Op::kConstant, .number = number, .format = format});
}

Value LoopBuilder::index(int32_t dimension) { return add({.op = Op::kIndex, .index = dimension}); }

Value LoopBuilder::cast(Value value, Format format) {
  const Format from = kind(value);
  if (format == from && format == kind_of(format)) return value;
  const bool narrow = format == Format::kBf16 || format == Format::kFp16;
  ExactValues& exact = format == Format::kBf16 ? exact_in_bf16_ : exact_in_fp16_;
  if (from == Format::kFp32 && narrow && exact.contains(program_, value.position)) return value;
  return add({.op = Op::kCast, .arguments = {value.position, -1, -1}, .format = format});
}

Value LoopBuilder::apply(Op op, Value a) {
  return add({.op = op, .arguments = {a.position, -1, -1}});
}

Value LoopBuilder::apply(Op op, Value a, Value b) {
  return add({.op = op, .arguments = {a.position, b.position, -1}});
}

Value LoopBuilder::apply(Op op, Value a, double b) { return apply(op, a, constant(b, kind(a))); }

Value LoopBuilder::select(Value condition, Value yes, Value no) {
  return add({.op = Op::kSelect, .arguments = {condition.position, yes.position, no.position}});
}

void LoopBuilder::output(Value value, Format format, std::vector<int64_t> strides) {
  program_.outputs.push_back({.operand = {.format = format, .strides = std::move(strides)},
                              .value = cast(value, kind_of(format)).position});
}

Format LoopBuilder::kind(Value value) const {
  const auto& list = program_.expressions;
  if (value.position < 0 || static_cast<size_t>(value.position) >= list.size()) fail();
  // Follows the argument that determines the data type: the last one.
  const Expression* e = &list[static_cast<size_t>(value.position)];
  while (true) {
    const OpTraits& traits = traits_of(e->op);
    if (traits.domain == Domain::kCompare || traits.domain == Domain::kOrder) return Format::kBool;
    if (e->op == Op::kCast || e->op == Op::kConstant) return kind_of(e->format);
    if (e->op == Op::kIndex) return Format::kInt64;
    if (e->op == Op::kInput) {
      return kind_of(program_.inputs[static_cast<size_t>(e->index)].format);
    }
    e = &list[static_cast<size_t>(e->arguments[static_cast<size_t>(traits.arity - 1)])];
  }
}

LoopProgram LoopBuilder::finish() && {
  check(program_);
  return std::move(program_);
}

}  // namespace gallop::compile
