#pragma once

#include <string>

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

namespace gallop::compile {

/// "fp32", "bf16", "int64".
std::string name_of_format(at::ScalarType type);

/// A constant argument of an operator as a short text: "1", "0.5", "true", "[1, 2]", "bf16" for an
/// integer that denotes a data type.
std::string text_of_constant(const c10::IValue& value, const c10::Argument& argument);

}  // namespace gallop::compile
