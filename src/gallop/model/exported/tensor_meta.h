#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

namespace gallop::model::exported {

/// A size, stride or scalar: a constant, or an expression of symbols such as the batch size.
struct Size {
  /// The constant, or the expression's value for the sample of the export; empty if unknown.
  std::optional<int64_t> hint;
  std::string expression;  ///< "4*s39"; empty for a constant.
  std::string symbol;      ///< "s39" if the expression is a symbol alone.

  bool is_constant() const { return expression.empty(); }
};

/// The constant; -1 if the size varies.
inline int64_t constant_of(const Size& size) {
  return size.is_constant() ? size.hint.value_or(-1) : -1;
}

/// Whether two sizes are known to be equal.
inline bool is_same(const Size& one, const Size& other) {
  return one.is_constant() ? constant_of(one) == constant_of(other) && constant_of(one) >= 0
                           : one.expression == other.expression;
}

/// The type and layout of a strided tensor.
struct TensorMeta {
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  std::vector<Size> sizes, strides;
  Size storage_offset;
  bool requires_grad = false;
};

/// Writes sympy's srepr() as a formula: "Mul(Integer(4), Symbol('s39', integer=True))" as "4*s39".
/// Texts that are not understood are returned as they are.
std::string sympy_formula(const std::string& srepr);

}  // namespace gallop::model::exported
