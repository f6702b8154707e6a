#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gallop::compile {

/// Data types in memory. Within a program bf16 and fp16 are fp32, and int32 is int64. fp16 is only
/// supported on GPUs.
enum class Format : uint8_t { kFp32, kBf16, kFp16, kFp64, kBool, kInt32, kInt64 };

/// "fp32", "bf16", ...
const char* name_of(Format format);
int64_t bytes_of(Format format);

/// An array in memory. Strides in elements, one for each dimension of the program; 0 if all
/// indices of a dimension share one element. A 0-dim tensor has only strides of 0.
struct LoopOperand {
  Format format = Format::kFp32;
  std::vector<int64_t> strides;
};

/// The operation of an expression on its arguments a, b, c. Both arguments of a binary one have
/// the same data type (fp32, fp64, integer, bool); the semantics are those of LibTorch's
/// operators.
enum class Op : uint8_t {
  // Without arguments.
  kInput,     ///< The element of inputs[index].
  kConstant,  ///< `number` in `format`; integers up to 2^53.
  kIndex,     ///< The position along dimension `index`, an integer.
  // Unary.
  kCast,  ///< To `format`; to bf16 and fp16 it rounds to nearest even. Integers: toward 0; bool: !=
          ///< 0.
  kNegate,  ///< Like abs and sign, supports integers.
  kAbs,
  kSign,  ///< -1, 0, 1; 0 for NaN.
  kRelu,  ///< NaN propagates.
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
  // Unary, computed by the C library lane by lane, hence slow.
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
  // Binary. Comparisons return a bool.
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,   ///< Not supported for integers: cast them.
  kPower,    ///< By the C library.
  kAtan2,    ///< By the C library.
  kMaximum,  ///< NaN if either is. Of 0 and -0 returns either, as all of these do.
  kMinimum,
  kClampMin,  ///< max(a, b); NaN if a is, b if only b is.
  kClampMax,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,  ///< Of bools, like or and xor.
  kOr,
  kXor,
  // Ternary.
  kSelect,  ///< b if the bool a is true, else c.
  // Over all elements of a row; the result is one scalar per row, of the argument's data type.
  kRowSum,
  kRowMax,  ///< NaN if any element is.
  kRowMin,
  // Over all rows; the result is one scalar for each position in a row.
  kColumnSum,
  kColumnMax,
  kColumnMin,
  // Over all elements; the result is one scalar.
  kTotalSum,
  kTotalMax,
  kTotalMin,
};

/// One value. Arguments are indices of earlier expressions in the list.
struct Expression {
  Op op = Op::kConstant;
  std::array<int32_t, 3> arguments = {-1, -1, -1};
  int32_t index = 0;              ///< Of kInput and kIndex.
  double number = 0;              ///< Of kConstant.
  Format format = Format::kFp32;  ///< Of kConstant and kCast.
};

/// Where the value of an expression is stored, converted to the operand's format. The memory may be
/// that of an input of the same format and strides, unless an expression that depends on column
/// reductions reads that input: such outputs are stored last.
struct Output {
  LoopOperand operand;
  int32_t value = -1;
};

/// A loop over `sizes` (outermost first; none of them 0) that computes all expressions for each
/// element and stores outputs. The last `row_dims` dimensions form a row, the others count rows:
/// reductions are over either. Values that depend on a row reduction are computed in another sweep
/// over the row while it is cached. Values that depend on a column reduction may use only other
/// such values, constants and inputs that are the same in all rows; values that depend on a total
/// may use only other totals, constants and inputs of one element.
///
/// Reductions accumulate partial sums for accuracy (totals of fp32 add theirs in fp64), in an order
/// that depends on sizes only: bits do not depend on the number of threads.
struct LoopProgram {
  std::vector<int64_t> sizes;
  int32_t row_dims = 0;
  std::vector<LoopOperand> inputs;
  std::vector<Expression> expressions;
  std::vector<Output> outputs;
};

/// Throws InternalError naming the first invalid expression, operand or size.
void check(const LoopProgram& program);

}  // namespace gallop::compile
