#pragma once

#include <c10/core/ScalarType.h>

// Internal to tensor/: the names of data types in safetensors files.
namespace gallop {

struct SafetensorsType {
  const char* name;
  c10::ScalarType type;
};

inline constexpr SafetensorsType kSafetensorsTypes[] = {
    {"BOOL", c10::ScalarType::Bool},
    {"U8", c10::ScalarType::Byte},
    {"I8", c10::ScalarType::Char},
    {"F8_E5M2", c10::ScalarType::Float8_e5m2},
    {"F8_E4M3", c10::ScalarType::Float8_e4m3fn},
    {"F8_E8M0", c10::ScalarType::Float8_e8m0fnu},
    {"F8_E5M2FNUZ", c10::ScalarType::Float8_e5m2fnuz},
    {"F8_E4M3FNUZ", c10::ScalarType::Float8_e4m3fnuz},
    {"I16", c10::ScalarType::Short},
    {"U16", c10::ScalarType::UInt16},
    {"F16", c10::ScalarType::Half},
    {"BF16", c10::ScalarType::BFloat16},
    {"I32", c10::ScalarType::Int},
    {"U32", c10::ScalarType::UInt32},
    {"F32", c10::ScalarType::Float},
    {"C64", c10::ScalarType::ComplexFloat},
    {"F64", c10::ScalarType::Double},
    {"I64", c10::ScalarType::Long},
    {"U64", c10::ScalarType::UInt64},
};

}  // namespace gallop
