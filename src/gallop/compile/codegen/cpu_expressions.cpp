#include "gallop/compile/codegen/cpu_expressions.h"

#include <fmt/format.h>

#include "gallop/compile/codegen/op_traits.h"

namespace gallop::compile {

namespace {

const Expression& expression(const LoopPlan& plan, int32_t at) {
  return plan.program.expressions[static_cast<size_t>(at)];
}

const ValueTraits& value(const LoopPlan& plan, int32_t at) {
  return plan.values[static_cast<size_t>(at)];
}

// A constant is read at run time, so that its value does not change the kernel's source.
std::string constant(const LoopPlan& plan, int32_t at) {
  int32_t before = 0;
  for (int32_t i = 0; i < at; ++i) before += expression(plan, i).op == Op::kConstant;
  return fmt::format("arguments->numbers[{}]", before);
}

const char* cast_name(Format format) {
  switch (format) {
    case Format::kFp32: return "cast_fp32";
    case Format::kBf16: return "cast_bf16";
    case Format::kFp16: break;  // Rejected by cpu_source().
    case Format::kFp64: return "cast_fp64";
    case Format::kBool: return "cast_bool";
    case Format::kInt32: return "cast_int32";
    case Format::kInt64: return "cast_int64";
  }
  return "";
}

std::string loaded(const LoopPlan& plan, size_t input) {
  const LoopOperand& operand = plan.program.inputs[input];
  if (last_stride(operand) == 0) return fmt::format("spread(read(q{}))", input);
  if (last_stride(operand) == 1) return fmt::format("get(lanes, q{} + i)", input);
  return fmt::format("get(lanes, q{0} + i * s{0}_{1}, s{0}_{1})", input,
                     plan.program.sizes.size() - 1);
}

std::string cast_text(Format to, Format from, const std::string& a) {
  const bool simple = (from == Format::kFp32 && (to == Format::kBf16 || to == Format::kBool)) ||
                      (from == Format::kBool && (to == Format::kFp32 || to == Format::kBf16));
  if (simple) return fmt::format("{}({})", cast_name(to), a);
  return fmt::format("cast_lanes<{}, {}>({}, []({} a) {{ return {}(a); }})", number_type(from),
                     number_type(kind_of(to)), a, number_type(from), cast_name(to));
}

}  // namespace

const char* pointee(Format format) {
  switch (format) {
    case Format::kFp32: return "float";
    case Format::kBf16: return "Bf16";
    case Format::kFp16: return "Fp16";
    case Format::kFp64: return "double";
    case Format::kBool: return "uint8_t";
    case Format::kInt32: return "int32_t";
    case Format::kInt64: return "int64_t";
  }
  return "";
}

const char* number_type(Format kind) { return kind == Format::kBool ? "bool" : pointee(kind); }

const char* vector_type(Format kind) {
  switch (kind) {
    case Format::kFp64: return "F64";
    case Format::kInt64: return "I64";
    case Format::kBool: return "Mask";
    default: return "F32";
  }
}

const char* kind_of_reduction(Op op) {
  switch (op) {
    case Op::kRowSum:
    case Op::kColumnSum:
    case Op::kTotalSum: return "Plus";
    case Op::kRowMax:
    case Op::kColumnMax:
    case Op::kTotalMax: return "Larger";
    default: return "Smaller";
  }
}

const char* total_type(Op op, Format kind) {
  return op == Op::kTotalSum && kind == Format::kFp32 ? "double" : pointee(kind);
}

int64_t last_stride(const LoopOperand& operand) {
  return std::min<int64_t>(operand.strides.back(), 2);
}

std::string number_text(const LoopPlan& plan, int32_t at, const char* base) {
  const Expression& e = expression(plan, at);
  const auto argument = [&](size_t i) { return fmt::format("v{}", e.arguments[i]); };
  std::string text;
  switch (e.op) {
    case Op::kInput: text = fmt::format("read({}{})", base, e.index); break;
    case Op::kConstant:
      text = fmt::format("{}({})", cast_name(e.format), constant(plan, at));
      break;
    case Op::kIndex: text = fmt::format("k{}", e.index); break;
    case Op::kCast: text = fmt::format("{}({})", cast_name(e.format), argument(0)); break;
    case Op::kSelect:
      text = fmt::format("select({}, {}, {})", argument(0), argument(1), argument(2));
      break;
    default:
      text = fmt::format("op_{}({}", traits_of(e.op).name, argument(0));
      if (traits_of(e.op).arity == 2) text += ", " + argument(1);
      text += ")";
  }
  return text;
}

std::string element_name(const LoopPlan& plan, int32_t at) {
  const Level level = value(plan, at).level;
  const bool number = level == Level::kAll || level == Level::kRow;
  return number ? fmt::format("spread(v{})", at) : fmt::format("e{}", at);
}

std::string element_text(const LoopPlan& plan, int32_t at) {
  const Expression& e = expression(plan, at);
  const OpTraits& traits = traits_of(e.op);
  if (e.op == Op::kInput) return loaded(plan, static_cast<size_t>(e.index));
  if (e.op == Op::kIndex) {
    const bool last = static_cast<size_t>(e.index) == plan.program.sizes.size() - 1;
    return last ? "count_from(i)" : fmt::format("spread(j{})", e.index);
  }
  const std::string a = element_name(plan, e.arguments[0]);
  const Format from = value(plan, e.arguments[0]).kind;
  if (e.op == Op::kCast) return cast_text(e.format, from, a);
  if (e.op == Op::kSelect) {
    return fmt::format("select({}, {}, {})", a, element_name(plan, e.arguments[1]),
                       element_name(plan, e.arguments[2]));
  }
  const bool direct = from == Format::kBool || (from == Format::kFp32 && traits.vectorized);
  const std::string list = traits.arity == 2 ? a + ", " + element_name(plan, e.arguments[1]) : a;
  if (direct) return fmt::format("op_{}({})", traits.name, list);
  const bool compares = value(plan, at).kind == Format::kBool;
  const char* number = number_type(from);
  return traits.arity == 2 ? fmt::format("{}({}, []({} a, {} b) {{ return op_{}(a, b); }})",
                                         compares ? "compare_lanes" : "by_lanes", list, number,
                                         number, traits.name)
                           : fmt::format("by_lanes({}, []({} a) {{ return op_{}(a); }})", list,
                                         number, traits.name);
}

}  // namespace gallop::compile
