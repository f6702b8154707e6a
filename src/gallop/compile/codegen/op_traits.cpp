#include "gallop/compile/codegen/op_traits.h"

#include <array>

namespace gallop::compile {

namespace {

using enum Op;
using enum Domain;

// Cycles of a function of the C library for 16 elements.
constexpr int kSlow = 200;

constexpr std::array kTraits = std::to_array<OpTraits>({
    {kInput, "input", 0, kOwn, 1},
    {kConstant, "constant", 0, kOwn, 0},
    {kIndex, "index", 0, kOwn, 4},
    {kCast, "cast", 1, kOwn, 2},
    {kNegate, "negate", 1, kNumber, 1},
    {kAbs, "abs", 1, kNumber, 1},
    {kSign, "sign", 1, kNumber, 2},
    {kRelu, "relu", 1, kNumber, 1},
    {kFloor, "floor", 1, kFloating, 2},
    {kCeil, "ceil", 1, kFloating, 2},
    {kTrunc, "trunc", 1, kFloating, 2},
    {kRound, "round", 1, kFloating, 3},
    {kSqrt, "sqrt", 1, kFloating, 18},
    {kRsqrt, "rsqrt", 1, kFloating, 34},
    {kReciprocal, "reciprocal", 1, kFloating, 16},
    {kExp, "exp", 1, kFloating, 14},
    {kExpm1, "expm1", 1, kFloating, 18},
    {kLog, "log", 1, kFloating, 20},
    {kLog1p, "log1p", 1, kFloating, 60},
    {kTanh, "tanh", 1, kFloating, 32},
    {kSigmoid, "sigmoid", 1, kFloating, 32},
    {kErf, "erf", 1, kFloating, 36},
    {kExp2, "exp2", 1, kFloating, kSlow, false},
    {kLog2, "log2", 1, kFloating, kSlow, false},
    {kLog10, "log10", 1, kFloating, kSlow, false},
    {kSin, "sin", 1, kFloating, kSlow, false},
    {kCos, "cos", 1, kFloating, kSlow, false},
    {kTan, "tan", 1, kFloating, kSlow, false},
    {kAsin, "asin", 1, kFloating, kSlow, false},
    {kAcos, "acos", 1, kFloating, kSlow, false},
    {kAtan, "atan", 1, kFloating, kSlow, false},
    {kSinh, "sinh", 1, kFloating, kSlow, false},
    {kCosh, "cosh", 1, kFloating, kSlow, false},
    {kErfc, "erfc", 1, kFloating, kSlow, false},
    {kNot, "not", 1, kLogic, 1},
    {kAdd, "add", 2, kNumber, 1},
    {kSubtract, "subtract", 2, kNumber, 1},
    {kMultiply, "multiply", 2, kNumber, 1},
    {kDivide, "divide", 2, kFloating, 16},
    {kPower, "power", 2, kFloating, 2 * kSlow, false},
    {kAtan2, "atan2", 2, kFloating, 2 * kSlow, false},
    {kMaximum, "maximum", 2, kNumber, 2},
    {kMinimum, "minimum", 2, kNumber, 2},
    {kClampMin, "clamp_min", 2, kNumber, 1},
    {kClampMax, "clamp_max", 2, kNumber, 1},
    {kEqual, "equal", 2, kCompare, 1},
    {kNotEqual, "not_equal", 2, kCompare, 1},
    {kLess, "less", 2, kOrder, 1},
    {kLessEqual, "less_equal", 2, kOrder, 1},
    {kGreater, "greater", 2, kOrder, 1},
    {kGreaterEqual, "greater_equal", 2, kOrder, 1},
    {kAnd, "and", 2, kLogic, 1},
    {kOr, "or", 2, kLogic, 1},
    {kXor, "xor", 2, kLogic, 1},
    {kSelect, "select", 3, kOwn, 1},
    {kRowSum, "row_sum", 1, kNumber, 2},
    {kRowMax, "row_max", 1, kNumber, 3},
    {kRowMin, "row_min", 1, kNumber, 3},
    {kColumnSum, "column_sum", 1, kNumber, 3},
    {kColumnMax, "column_max", 1, kNumber, 4},
    {kColumnMin, "column_min", 1, kNumber, 4},
    {kTotalSum, "total_sum", 1, kNumber, 2},
    {kTotalMax, "total_max", 1, kNumber, 3},
    {kTotalMin, "total_min", 1, kNumber, 3},
});

constexpr bool in_order() {
  for (size_t i = 0; i < kTraits.size(); ++i) {
    if (kTraits[i].op != static_cast<Op>(i)) return false;
  }
  return kTraits.size() == static_cast<size_t>(kTotalMin) + 1;
}
static_assert(in_order());

}  // namespace

const OpTraits& traits_of(Op op) { return kTraits[static_cast<size_t>(op)]; }

}  // namespace gallop::compile
