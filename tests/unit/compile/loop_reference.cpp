#include "unit/compile/loop_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include <c10/util/Half.h>

#include "gallop/compile/codegen/loop_values.h"
#include "gallop/compile/codegen/op_traits.h"

namespace gallop::compile {

namespace {

constexpr double kAnything = std::numeric_limits<double>::infinity();

double to_bf16(double number, bool flushes) {
  const auto narrow = static_cast<float>(number);
  if (std::isnan(narrow)) return number;
  if (flushes && std::abs(narrow) < 0x1p-126F) return std::copysign(0.0, number);
  const auto bits = std::bit_cast<uint32_t>(narrow);
  const uint32_t up = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000U;
  return static_cast<double>(std::bit_cast<float>(up));
}

double to_fp16(double number) {
  const double narrow = static_cast<double>(static_cast<float>(number));
  if (narrow == 0 || !std::isfinite(narrow)) return narrow;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(narrow), -14) - 10);
  const double rounded = std::nearbyint(narrow / unit) * unit;
  return std::abs(rounded) < 0x1p16 ? rounded : std::copysign(kAnything, rounded);
}

double unit_of(double number, Format kind) {
  if (std::isinf(number) || std::isnan(number)) return 0;
  const int digits = kind == Format::kFp64 ? 52 : 23;
  const double least = kind == Format::kFp64 ? 0x1p-1074 : 0x1p-149;
  if (number == 0) return least;
  return std::max(std::ldexp(1.0, std::ilogb(number) - digits), least);
}

// The documented error bounds of functions, in ulp.
double ulps_of(Op op) {
  switch (op) {
    case Op::kExp: return 1.6;
    case Op::kExpm1:
    case Op::kLog:
    case Op::kTanh:
    case Op::kErf: return 2.5;
    case Op::kLog1p:
    case Op::kSigmoid: return 3.5;
    case Op::kRsqrt: return 1;  // Two roundings.
    default: return op >= Op::kExp2 && op <= Op::kErfc ? 1 : 0;
  }
}

double apply(Op op, double a) {
  switch (op) {
    case Op::kNegate: return -a;
    case Op::kAbs: return std::abs(a);
    case Op::kSign: return static_cast<double>((a > 0) - (a < 0));
    case Op::kRelu: return a < 0 ? 0 : a;
    case Op::kFloor: return std::floor(a);
    case Op::kCeil: return std::ceil(a);
    case Op::kTrunc: return std::trunc(a);
    case Op::kRound: return std::nearbyint(a);
    case Op::kSqrt: return std::sqrt(a);
    case Op::kRsqrt: return 1 / std::sqrt(a);
    case Op::kReciprocal: return 1 / a;
    case Op::kExp: return std::exp(a);
    case Op::kExpm1: return std::expm1(a);
    case Op::kLog: return std::log(a);
    case Op::kLog1p: return std::log1p(a);
    case Op::kTanh: return std::tanh(a);
    case Op::kSigmoid: return 1 / (1 + std::exp(-a));
    case Op::kErf: return std::erf(a);
    case Op::kExp2: return std::exp2(a);
    case Op::kLog2: return std::log2(a);
    case Op::kLog10: return std::log10(a);
    case Op::kSin: return std::sin(a);
    case Op::kCos: return std::cos(a);
    case Op::kTan: return std::tan(a);
    case Op::kAsin: return std::asin(a);
    case Op::kAcos: return std::acos(a);
    case Op::kAtan: return std::atan(a);
    case Op::kSinh: return std::sinh(a);
    case Op::kCosh: return std::cosh(a);
    case Op::kErfc: return std::erfc(a);
    case Op::kNot: return a == 0 ? 1 : 0;
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}

double apply(Op op, double a, double b) {
  const auto truth = [](bool value) { return value ? 1.0 : 0.0; };
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSubtract: return a - b;
    case Op::kMultiply: return a * b;
    case Op::kDivide: return a / b;
    case Op::kPower: return std::pow(a, b);
    case Op::kAtan2: return std::atan2(a, b);
    case Op::kMaximum: return std::isnan(a) || a > b ? a : b;
    case Op::kMinimum: return std::isnan(a) || a < b ? a : b;
    case Op::kClampMin: return b > a ? b : a;
    case Op::kClampMax: return b < a ? b : a;
    case Op::kEqual: return truth(a == b);
    case Op::kNotEqual: return truth(a != b);
    case Op::kLess: return truth(a < b);
    case Op::kLessEqual: return truth(a <= b);
    case Op::kGreater: return truth(a > b);
    case Op::kGreaterEqual: return truth(a >= b);
    case Op::kAnd: return truth(a != 0 && b != 0);
    case Op::kOr: return truth(a != 0 || b != 0);
    case Op::kXor: return truth((a != 0) != (b != 0));
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}

double gap(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (a == b) return 0;
  const double distance = std::abs(a - b);
  return std::isnan(distance) ? kAnything : distance;
}

// Whether the result between two ends can be elsewhere than between their results.
bool has_turns(Op op) { return op == Op::kTan || op == Op::kReciprocal || op == Op::kRsqrt; }

Bounded unary(Op op, Format kind, const Bounded& a) {
  Bounded result{.number = rounded(apply(op, a.number), kind, false)};
  if (a.slack > 0) {
    result.slack = std::max(gap(apply(op, a.number - a.slack), result.number),
                            gap(apply(op, a.number + a.slack), result.number)) +
                   unit_of(result.number, kind);
    const bool around_zero = std::abs(a.number) <= a.slack;
    if (has_turns(op) && around_zero) result.slack = kAnything;
    if (op == Op::kTan) result.slack = kAnything;
    if (op == Op::kAbs || op == Op::kSin || op == Op::kCos) result.slack = a.slack * 1.001;
    if (op == Op::kCosh && around_zero) result.slack *= 2;
    if (op == Op::kNot) result.slack = 1;
  }
  // Maximum and minimum of zeros may have either sign.
  const bool divides = op == Op::kReciprocal || op == Op::kRsqrt;
  if (divides && a.number == 0) result.slack = kAnything;
  // Two roundings, of the function and of what it is made of; C libraries may differ in the
  // last.
  const double ulps = kind == Format::kFp64 ? std::min(ulps_of(op), 2.0) : ulps_of(op);
  result.slack += ulps * unit_of(result.number, kind);
  // Smaller numbers than normal ones keep fewer digits, and sigmoid none.
  if (ulps > 0 && kind == Format::kFp32 && std::abs(result.number) < 0x1p-120) {
    result.slack += op == Op::kSigmoid ? 0x1p-126 : 0x1p-148;
  }
  return result;
}

Bounded binary(Op op, Format kind, const Bounded& a, const Bounded& b) {
  Bounded result{.number = rounded(apply(op, a.number, b.number), kind, false)};
  if (a.slack > 0 || b.slack > 0) {
    for (const double x : {a.number - a.slack, a.number + a.slack}) {
      for (const double y : {b.number - b.slack, b.number + b.slack}) {
        result.slack = std::max(result.slack, gap(apply(op, x, y), result.number));
      }
    }
    result.slack += unit_of(result.number, kind);
    const bool zero_divisor = std::abs(b.number) <= b.slack;
    if (op == Op::kPower || op == Op::kAtan2 || (op == Op::kDivide && zero_divisor)) {
      result.slack = kAnything;
    }
    if (kind == Format::kBool) {
      const double distance = std::abs(a.number - b.number);
      result.slack = distance <= a.slack + b.slack || std::isnan(distance) ? 1 : 0;
    }
    const bool logic = op == Op::kAnd || op == Op::kOr || op == Op::kXor;
    if (logic) result.slack = 1;
  }
  // The results of zeros may have either sign.
  if ((op == Op::kDivide || op == Op::kPower) && b.number == 0) result.slack = kAnything;
  if ((op == Op::kPower || op == Op::kAtan2) && a.number == 0) result.slack = kAnything;
  if (op == Op::kAtan2 && b.number == 0) result.slack = kAnything;
  const bool by_library = op == Op::kPower || op == Op::kAtan2;
  if (by_library) result.slack += unit_of(result.number, kind);
  return result;
}

Bounded cast(Format to, const Bounded& a, bool flushes) {
  Bounded result{.number = rounded(a.number, to, flushes)};
  if (a.slack > 0) {
    result.slack = std::max(gap(rounded(a.number - a.slack, to, flushes), result.number),
                            gap(rounded(a.number + a.slack, to, flushes), result.number));
    if (to == Format::kBool) result.slack = std::abs(a.number) <= a.slack ? 1 : 0;
  }
  return result;
}

Bounded select(const Bounded& condition, const Bounded& yes, const Bounded& no) {
  Bounded result = condition.number != 0 ? yes : no;
  if (condition.slack > 0) result.slack = gap(yes.number, no.number) + yes.slack + no.slack;
  return result;
}

Bounded reduce(Op op, Format kind, const std::vector<Bounded>& list) {
  Bounded result = list[0];
  const bool sum = op == Op::kRowSum || op == Op::kColumnSum || op == Op::kTotalSum;
  const bool most = op == Op::kRowMax || op == Op::kColumnMax || op == Op::kTotalMax;
  double size = std::abs(list[0].number), slack = list[0].slack;
  for (size_t i = 1; i < list.size(); ++i) {
    const Op step = sum ? Op::kAdd : (most ? Op::kMaximum : Op::kMinimum);
    result.number = apply(step, result.number, list[i].number);
    size += std::abs(list[i].number);
    slack = sum ? slack + list[i].slack : std::max(slack, list[i].slack);
  }
  result.slack = slack;
  if (sum && kind != Format::kInt64) {
    result.number = rounded(result.number, kind, false);
    // Parts of at most 40 steps, three deep.
    const double unit =
        kind == Format::kFp64 ? 0x1p-52 * static_cast<double>(list.size()) : 0x1p-18;
    result.slack += list.size() > 1 ? size * unit : 0;
    if (std::isinf(size) || size > 1e37) result.slack = kAnything;
    if (std::isnan(result.number)) result.slack = slack > 0 ? kAnything : 0;
  }
  return result;
}

/// All indices of a program in order, as positions along each dimension.
void for_each_index(const std::vector<int64_t>& sizes,
                    const std::function<void(size_t, const std::vector<int64_t>&)>& body) {
  std::vector<int64_t> index(sizes.size(), 0);
  size_t count = 1;
  for (const int64_t size : sizes) count *= static_cast<size_t>(size);
  for (size_t at = 0; at < count; ++at) {
    body(at, index);
    for (size_t dim = sizes.size(); dim-- > 0;) {
      if (++index[dim] < sizes[dim]) break;
      index[dim] = 0;
    }
  }
}

int64_t offset_of(const LoopOperand& operand, const std::vector<int64_t>& index) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i) offset += index[i] * operand.strides[i];
  return offset;
}

/// All values of all elements.
class Interpreter {
 public:
  Interpreter(const LoopProgram& program, const std::vector<Memory>& inputs, bool flushes)
      : program_(program), inputs_(inputs), flushes_(flushes), traits_(analyze(program)) {
    for (size_t i = 0; i < program.sizes.size(); ++i) {
      const bool outer = i + static_cast<size_t>(program.row_dims) < program.sizes.size();
      (outer ? rows_ : columns_) *= static_cast<size_t>(program.sizes[i]);
    }
    for (size_t at = 0; at < program.expressions.size(); ++at) compute(at);
  }
  const std::vector<Bounded>& values(int32_t at) const { return values_[static_cast<size_t>(at)]; }

 private:
  const std::vector<Bounded>& argument(const Expression& e, size_t i) const {
    return values(e.arguments[i]);
  }

  void compute(size_t at) {
    const Expression& e = program_.expressions[at];
    const Format kind = traits_[at].kind;
    std::vector<Bounded> result(rows_ * columns_);
    if (is_reduction(e.op)) {
      reduce_all(e, kind, result);
    } else if (traits_of(e.op).arity == 0) {
      for_each_index(program_.sizes, [&](size_t i, const std::vector<int64_t>& index) {
        result[i].number = leaf(e, index);
      });
    } else {
      for (size_t i = 0; i < result.size(); ++i) result[i] = element(e, kind, i);
    }
    values_.push_back(std::move(result));
  }

  double leaf(const Expression& e, const std::vector<int64_t>& index) const {
    const auto which = static_cast<size_t>(e.index);
    if (e.op == Op::kConstant) return rounded(e.number, e.format, flushes_);
    if (e.op == Op::kIndex) return static_cast<double>(index[which]);
    const LoopOperand& operand = program_.inputs[which];
    return read_number(inputs_[which], operand.format, offset_of(operand, index));
  }

  Bounded element(const Expression& e, Format kind, size_t i) const {
    const Bounded& a = argument(e, 0)[i];
    if (e.op == Op::kCast) return cast(e.format, a, flushes_);
    if (e.op == Op::kSelect) return select(a, argument(e, 1)[i], argument(e, 2)[i]);
    return traits_of(e.op).arity == 1 ? unary(e.op, kind, a)
                                      : binary(e.op, kind, a, argument(e, 1)[i]);
  }

  void reduce_all(const Expression& e, Format kind, std::vector<Bounded>& result) const {
    const bool row = is_row_reduction(e.op), all = is_total(e.op);
    const size_t groups = all ? 1 : (row ? rows_ : columns_);
    const size_t size = rows_ * columns_ / groups;
    for (size_t group = 0; group < groups; ++group) {
      std::vector<Bounded> list(size);
      const auto place = [&](size_t i) {
        return row || all ? group * columns_ + i : i * columns_ + group;
      };
      for (size_t i = 0; i < size; ++i) list[i] = argument(e, 0)[place(i)];
      const Bounded total = reduce(e.op, kind, list);
      for (size_t i = 0; i < size; ++i) result[place(i)] = total;
    }
  }

  const LoopProgram& program_;
  const std::vector<Memory>& inputs_;
  bool flushes_;
  std::vector<ValueTraits> traits_;
  size_t rows_ = 1, columns_ = 1;
  std::vector<std::vector<Bounded>> values_;
};

}  // namespace

int64_t reach_of(const LoopOperand& operand, const std::vector<int64_t>& sizes) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * operand.strides[i];
  return last + 1;
}

double rounded(double number, Format format, bool flushes) {
  switch (format) {
    case Format::kFp64: return number;
    case Format::kFp32: return static_cast<double>(static_cast<float>(number));
    case Format::kBf16: return to_bf16(number, flushes);
    case Format::kFp16: return to_fp16(number);
    case Format::kBool: return number != 0 ? 1 : 0;
    case Format::kInt32:
    case Format::kInt64: return std::trunc(number);
  }
  return number;
}

template <typename T>
double read_as(const Memory& memory, int64_t at) {
  T number;
  std::memcpy(&number, memory.data() + static_cast<size_t>(at) * sizeof(T), sizeof(T));
  return static_cast<double>(number);
}

template <typename T>
void write_as(Memory& memory, int64_t at, T number) {
  std::memcpy(memory.data() + static_cast<size_t>(at) * sizeof(T), &number, sizeof(T));
}

double read_number(const Memory& memory, Format format, int64_t at) {
  switch (format) {
    case Format::kFp64: return read_as<double>(memory, at);
    case Format::kFp32: return read_as<float>(memory, at);
    case Format::kBool: return read_as<uint8_t>(memory, at);
    case Format::kInt32: return read_as<int32_t>(memory, at);
    case Format::kInt64: return read_as<int64_t>(memory, at);
    case Format::kFp16: return read_as<c10::Half>(memory, at);
    case Format::kBf16: {
      uint16_t bits = 0;
      std::memcpy(&bits, memory.data() + at * 2, 2);
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
    }
  }
  return 0;
}

void write_number(Memory& memory, Format format, int64_t at, double number) {
  switch (format) {
    case Format::kFp64: return write_as(memory, at, number);
    case Format::kFp32: return write_as(memory, at, static_cast<float>(number));
    case Format::kBool: return write_as(memory, at, static_cast<uint8_t>(number != 0));
    case Format::kInt32: return write_as(memory, at, static_cast<int32_t>(number));
    case Format::kInt64: return write_as(memory, at, static_cast<int64_t>(number));
    case Format::kFp16: return write_as(memory, at, c10::Half(static_cast<float>(number)));
    case Format::kBf16: {
      const auto bits = std::bit_cast<uint32_t>(static_cast<float>(to_bf16(number, false)));
      return write_as(memory, at, static_cast<uint16_t>(std::isnan(number) ? 0x7fc0 : bits >> 16));
    }
  }
}

std::vector<std::vector<Bounded>> interpret(const LoopProgram& program,
                                            const std::vector<Memory>& inputs, bool flushes) {
  const Interpreter interpreter(program, inputs, flushes);
  std::vector<std::vector<Bounded>> outputs;
  for (const Output& output : program.outputs) {
    std::vector<Bounded> array(static_cast<size_t>(reach_of(output.operand, program.sizes)));
    const auto& values = interpreter.values(output.value);
    for_each_index(program.sizes, [&](size_t i, const std::vector<int64_t>& index) {
      array[static_cast<size_t>(offset_of(output.operand, index))] =
          cast(output.operand.format, values[i], flushes);
    });
    outputs.push_back(std::move(array));
  }
  return outputs;
}

}  // namespace gallop::compile
