#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gallop::compile {

/// Number formats in memory. Within a program bf16 and fp16 are fp32, int32 are int64. fp16 is for
/// GPUs alone.
enum class Format : uint8_t { kFp32, kBf16, kFp16, kFp64, kBool, kInt32, kInt64 };

/// "fp32", "bf16", ...
const char* name_of(Format format);
int64_t bytes_of(Format format);

/// An array in memory. Strides in elements, one for each dimension of the program; 0 where all
/// indices of a dimension share one element. A 0-dim tensor has strides of 0 alone.
struct LoopOperand {
  Format format = Format::kFp32;
  std::vector<int64_t> strides;
};

/// What an expression computes from its arguments a, b, c. Both arguments of a binary one are
/// numbers of one kind (fp32, fp64, integer, bool); the semantics are those of LibTorch's
/// operators.
enum class Op : uint8_t {
  // Without arguments.
  kInput,     ///< The element of inputs[index].
  kConstant,  ///< `number` in `format`; whole numbers up to 2^53.
  kIndex,     ///< The position along dimension `index`, an integer.
  // Of one argument.
  kCast,  ///< To `format`; to bf16 and fp16 it rounds to nearest even. Integers: toward 0; bool: !=
          ///< 0.
  kNegate,  ///< And abs, sign: of integers as well.
  kAbs,
  kSign,  ///< -1, 0, 1; 0 of NaN.
  kRelu,  ///< NaN stays.
  kFloor,
  kCeil,
  kTrunc,
  kRound,  ///< Half to even.
  kSqrt,   ///< Correctly rounded, like division.
  kRsqrt,  ///< 1 / sqrt(a)
  kReciprocal,
  kExp,  ///< 1.1 ulp; all bounds in kernel/cpu/math.h and math_ieee.h.
  kExpm1,
  kLog,
  kLog1p,
  kTanh,
  kSigmoid,  ///< 1 / (1 + e^-a)
  kErf,
  // Of one argument, by the C library lane by lane, hence slow.
  kExp2,
  kLog2,
  kLog10,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kErfc,
  kNot,  ///< Of a bool.
  // Of two arguments. Compare gives a bool.
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,   ///< Not of integers: cast them.
  kPower,    ///< By the C library.
  kAtan2,    ///< By the C library.
  kMaximum,  ///< NaN where either is. Of 0 and -0 either, as in all such.
  kMinimum,
  kClampMin,  ///< max(a, b); NaN where a is, b where only b is.
  kClampMax,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,  ///< Of bools, as are or and xor.
  kOr,
  kXor,
  // Of three arguments.
  kSelect,  ///< b where the bool a holds, else c.
  // Over all elements of a row; the result is one number for the row, of the argument's kind.
  kRowSum,
  kRowMax,  ///< NaN where any is.
  kRowMin,
  // Over all rows; the result is one number for each position in a row.
  kColumnSum,
  kColumnMax,
  kColumnMin,
  // Over all elements; the result is one number.
  kTotalSum,
  kTotalMax,
  kTotalMin,
};

/// One value. Arguments are positions of earlier expressions in the list.
struct Expression {
  Op op = Op::kConstant;
  std::array<int32_t, 3> arguments = {-1, -1, -1};
  int32_t index = 0;              ///< Of kInput and kIndex.
  double number = 0;              ///< Of kConstant.
  Format format = Format::kFp32;  ///< Of kConstant and kCast.
};

/// Where the value of an expression goes, in the operand's format (rounded to it where narrower).
/// The memory may be an input's where format and strides are the same, but for an input that what
/// depends on column reductions reads: that is stored last.
struct Output {
  LoopOperand operand;
  int32_t value = -1;
};

/// A loop over `sizes` (outermost first; none of them 0) that computes all expressions for each
/// element and stores outputs. The last `row_dims` dimensions are a row, the others count rows:
/// reductions run over either. What depends on a row reduction is computed in a further sweep over
/// the row while that lies in the cache. What depends on a column reduction may use only other
/// ones, constants and inputs that do not change from row to row; what depends on a total only
/// other totals, constants and inputs of one number.
///
/// Sums are taken in parts, so that they err little (totals of fp32 join their parts in fp64), and
/// in an order that the sizes alone decide: bits do not depend on the number of threads.
struct LoopProgram {
  std::vector<int64_t> sizes;
  int32_t row_dims = 0;
  std::vector<LoopOperand> inputs;
  std::vector<Expression> expressions;
  std::vector<Output> outputs;
};

/// Throws InternalError that names the first expression, operand or size that is wrong.
void check(const LoopProgram& program);

}  // namespace gallop::compile
