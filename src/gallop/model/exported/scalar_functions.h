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
  std::string_view name;  ///< Of Python's operator, math or torch module: "floordiv", "sym_max".
  size_t arguments = 0;
  c10::IValue (*call)(const std::vector<c10::IValue>& arguments) = nullptr;
};

/// Null if torch.export uses no function of that name.
const ScalarFunction* find_scalar_function(std::string_view name);

}  // namespace gallop::model::exported
