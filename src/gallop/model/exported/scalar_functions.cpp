#include "gallop/model/exported/scalar_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "gallop/base/error.h"

namespace gallop::model::exported {

namespace {

using Arguments = std::vector<c10::IValue>;

bool is_float(const c10::IValue& value) { return value.isDouble(); }
int64_t integer(const c10::IValue& value) {
  return value.isBool() ? static_cast<int64_t>(value.toBool()) : value.toInt();
}
double real(const c10::IValue& value) {
  return is_float(value) ? value.toDouble() : static_cast<double>(integer(value));
}
bool truth(const c10::IValue& value) {
  return is_float(value) ? value.toDouble() != 0 : integer(value) != 0;
}

[[noreturn]] void fail(const char* what) {
  throw DataError(std::string("an integer of the exported program ") + what);
}

using IntegerOperation = bool (*)(int64_t a, int64_t b, int64_t* result);
using RealOperation = double (*)(double a, double b);

// On integers if both are, with a check for overflow, otherwise on floating-point numbers.
template <IntegerOperation of_integers, RealOperation of_reals>
c10::IValue arithmetic(const Arguments& in) {
  if (is_float(in[0]) || is_float(in[1])) return of_reals(real(in[0]), real(in[1]));
  int64_t result = 0;
  if (of_integers(integer(in[0]), integer(in[1]), &result)) fail("has more than 64 bits");
  return result;
}

bool floor_of_quotient(int64_t a, int64_t b, int64_t* result) {
  if (b == 0) fail("is divided by zero");
  if (b == -1) return __builtin_sub_overflow(int64_t{0}, a, result);
  *result = a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
  return false;
}
bool remainder(int64_t a, int64_t b, int64_t* result) {
  if (b == 0) fail("is divided by zero");
  *result = b == -1 ? 0 : a % b;
  if (*result != 0 && (*result < 0) != (b < 0)) *result += b;
  return false;
}
double real_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

c10::IValue power(const Arguments& in) {
  if (is_float(in[0]) || is_float(in[1]) || integer(in[1]) < 0) {
    return std::pow(real(in[0]), real(in[1]));
  }
  int64_t result = 1, base = integer(in[0]);
  for (int64_t rest = integer(in[1]); rest > 0; rest >>= 1) {
    if ((rest & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      fail("has more than 64 bits");
    }
    if (rest > 1 && __builtin_mul_overflow(base, base, &base)) fail("has more than 64 bits");
  }
  return result;
}

template <bool to_left>
c10::IValue shift(const Arguments& in) {
  const int64_t bits = integer(in[1]);
  if (bits < 0) fail("is shifted by a negative number of bits");
  const int64_t value = integer(in[0]);
  if (!to_left) return value >> std::min<int64_t>(bits, 63);
  int64_t result = 0;
  const bool is_large = bits > 62 || __builtin_mul_overflow(value, int64_t{1} << bits, &result);
  if (is_large && value != 0) fail("has more than 64 bits");
  return result;
}

template <typename Compare>
c10::IValue compare(const Arguments& in) {
  if (is_float(in[0]) || is_float(in[1])) return Compare()(real(in[0]), real(in[1]));
  return Compare()(integer(in[0]), integer(in[1]));
}

template <bool takes_smaller>
c10::IValue extreme(const Arguments& in) {
  const bool is_real = is_float(in[0]) || is_float(in[1]);
  const bool second_is_smaller =
      is_real ? real(in[1]) < real(in[0]) : integer(in[1]) < integer(in[0]);
  const c10::IValue& chosen = in[second_is_smaller == takes_smaller ? 1 : 0];
  return is_real ? c10::IValue(real(chosen)) : c10::IValue(integer(chosen));
}

c10::IValue negated(const Arguments& in) {
  if (is_float(in[0])) return -real(in[0]);
  int64_t result = 0;
  if (__builtin_sub_overflow(int64_t{0}, integer(in[0]), &result)) fail("has more than 64 bits");
  return result;
}

c10::IValue integer_of(double value) {
  constexpr double kLimit = 9223372036854775808.0;
  if (!(value >= -kLimit && value < kLimit)) fail("has more than 64 bits");
  return static_cast<int64_t>(value);
}

// bool & bool is a bool.
template <typename Operation>
c10::IValue bitwise(const Arguments& in) {
  const int64_t result = Operation()(integer(in[0]), integer(in[1]));
  return in[0].isBool() && in[1].isBool() ? c10::IValue(result != 0) : c10::IValue(result);
}

// NOLINTBEGIN(hicpp-signed-bitwise)
// _SYM_OPS of torch/_export/serde/serialize.py.
constexpr std::array<ScalarFunction, 27> kFunctions = {{
    {"_operator.eq", 2, compare<std::equal_to<>>},
    {"_operator.ne", 2, compare<std::not_equal_to<>>},
    {"_operator.le", 2, compare<std::less_equal<>>},
    {"_operator.ge", 2, compare<std::greater_equal<>>},
    {"_operator.lt", 2, compare<std::less<>>},
    {"_operator.gt", 2, compare<std::greater<>>},
    {"_operator.add", 2,
     arithmetic<[](int64_t a, int64_t b, int64_t* c) { return __builtin_add_overflow(a, b, c); },
                [](double a, double b) { return a + b; }>},
    {"_operator.sub", 2,
     arithmetic<[](int64_t a, int64_t b, int64_t* c) { return __builtin_sub_overflow(a, b, c); },
                [](double a, double b) { return a - b; }>},
    {"_operator.mul", 2,
     arithmetic<[](int64_t a, int64_t b, int64_t* c) { return __builtin_mul_overflow(a, b, c); },
                [](double a, double b) { return a * b; }>},
    {"_operator.floordiv", 2,
     arithmetic<floor_of_quotient, [](double a, double b) { return std::floor(a / b); }>},
    {"_operator.mod", 2, arithmetic<remainder, real_remainder>},
    {"_operator.truediv", 2,
     [](const Arguments& in) -> c10::IValue {
       if (real(in[1]) == 0) fail("is divided by zero");
       return real(in[0]) / real(in[1]);
     }},
    {"_operator.pow", 2, power},
    {"_operator.and_", 2, bitwise<std::bit_and<>>},
    {"_operator.or_", 2, bitwise<std::bit_or<>>},
    {"_operator.lshift", 2, shift<true>},
    {"_operator.rshift", 2, shift<false>},
    {"_operator.neg", 1, negated},
    {"_operator.pos", 1, [](const Arguments& in) { return in[0]; }},
    {"math.trunc", 1, [](const Arguments& in) { return integer_of(std::trunc(real(in[0]))); }},
    {"torch.sym_int", 1,
     [](const Arguments& in) {
       return is_float(in[0]) ? integer_of(std::trunc(real(in[0]))) : c10::IValue(integer(in[0]));
     }},
    {"torch.sym_float", 1, [](const Arguments& in) { return c10::IValue(real(in[0])); }},
    {"torch.sym_not", 1, [](const Arguments& in) { return c10::IValue(!truth(in[0])); }},
    {"torch._sym_sqrt", 1, [](const Arguments& in) { return c10::IValue(std::sqrt(real(in[0]))); }},
    {"torch.sym_max", 2, extreme<false>},
    {"torch.sym_min", 2, extreme<true>},
    {"torch.sym_ite", 3, [](const Arguments& in) { return truth(in[0]) ? in[1] : in[2]; }},
}};
// NOLINTEND(hicpp-signed-bitwise)

}  // namespace

const ScalarFunction* find_scalar_function(std::string_view name) {
  const auto* const found = std::find_if(kFunctions.begin(), kFunctions.end(),
                                         [&](const auto& one) { return one.name() == name; });
  return found == kFunctions.end() ? nullptr : found;
}

}  // namespace gallop::model::exported
