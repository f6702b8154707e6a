#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>

namespace gallop::model::exported {

/// A function of Python scalars, which are int, float or bool, by Python's rules: // and % round
/// towards minus infinity, / gives a float. Throws DataError for a division by zero and for
/// integers beyond 64 bits.
struct ScalarFunction {
  std::string_view target;  ///< As nodes name it: "_operator.floordiv", "torch.sym_max".
  size_t arguments = 0;
  c10::IValue (*call)(const std::vector<c10::IValue>& arguments) = nullptr;

  /// "floordiv"
  constexpr std::string_view name() const { return target.substr(target.rfind('.') + 1); }
};

/// Null if torch.export uses no function of that name.
const ScalarFunction* find_scalar_function(std::string_view name);

}  // namespace gallop::model::exported
