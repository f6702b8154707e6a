#include "gallop/compile/value_text.h"

#include <algorithm>
#include <cctype>

#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Layout.h>
#include <fmt/format.h>

namespace gallop::compile {

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

template <typename T>
std::string streamed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

// Enumerations are integers; the argument's type identifies them.
std::string text_of_number(int64_t number, c10::TypeKind type) {
  switch (type) {
    case c10::TypeKind::ScalarTypeType: return name_of_format(static_cast<at::ScalarType>(number));
    case c10::TypeKind::LayoutType: return lower(streamed(static_cast<c10::Layout>(number)));
    case c10::TypeKind::MemoryFormatType:
      return lower(streamed(static_cast<c10::MemoryFormat>(number)));
    default: return std::to_string(number);
  }
}

std::string text_of(const c10::IValue& value, const c10::TypePtr& type) {
  if (value.isNone()) return "none";
  const auto optional = type ? type->cast<c10::OptionalType>() : nullptr;
  const c10::TypePtr of = optional ? optional->getElementType() : type;
  if (value.isBool()) return value.toBool() ? "true" : "false";
  if (value.isInt()) {
    return text_of_number(value.toInt(), of ? of->kind() : c10::TypeKind::IntType);
  }
  if (value.isDouble()) return fmt::format("{:g}", value.toDouble());
  if (value.isString()) return "'" + value.toStringRef() + "'";
  if (value.isDevice()) return value.toDevice().str();
  if (value.isGenerator()) return "generator";
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return "none";
    if (tensor.numel() == 1) return text_of(c10::IValue(tensor.item()), nullptr);
    return fmt::format("{} of {} numbers", name_of_format(tensor.scalar_type()), tensor.numel());
  }
  if (value.isList()) {
    std::string items;
    for (const c10::IValue& item : value.toListRef()) {
      items += (items.empty() ? "" : ", ") + text_of(item, nullptr);
    }
    return "[" + items + "]";
  }
  // Addresses and other opaque values mean nothing to a reader.
  return "(" + lower(value.tagKind()) + ")";
}

}  // namespace

std::string name_of_format(at::ScalarType type) {
  switch (type) {
    case c10::kFloat: return "fp32";
    case c10::kDouble: return "fp64";
    case c10::kHalf: return "fp16";
    case c10::kBFloat16: return "bf16";
    case c10::kLong: return "int64";
    case c10::kInt: return "int32";
    case c10::kShort: return "int16";
    case c10::kChar: return "int8";
    case c10::kByte: return "uint8";
    default: return lower(c10::toString(type));
  }
}

std::string text_of_constant(const c10::IValue& value, const c10::Argument& argument) {
  return text_of(value, argument.real_type());
}

}  // namespace gallop::compile
