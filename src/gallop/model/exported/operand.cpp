#include "gallop/model/exported/operand.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::model::exported {

namespace {

using c10::TypeKind;

// A number as Python passes it for a tensor: it does not take part in type promotion.
at::Tensor wrapped_number(const c10::Scalar& number) {
  c10::ScalarType type = c10::ScalarType::Double;
  if (number.isIntegral(/*includeBool=*/false)) type = c10::ScalarType::Long;
  if (number.isBoolean()) type = c10::ScalarType::Bool;
  if (number.isComplex()) type = c10::ScalarType::ComplexDouble;
  at::Tensor tensor = at::scalar_tensor(number, at::TensorOptions().dtype(type));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

bool is_integer(TypeKind kind) { return kind == TypeKind::IntType || kind == TypeKind::SymIntType; }
bool is_float(TypeKind kind) {
  return kind == TypeKind::FloatType || kind == TypeKind::SymFloatType;
}
bool is_bool(TypeKind kind) { return kind == TypeKind::BoolType || kind == TypeKind::SymBoolType; }

class Maker {
 public:
  Maker(c10::Device device, const FindSlot& find_slot) : device_(device), find_slot_(find_slot) {}

  Operand make(const Argument& argument, const c10::TypePtr& type,
               std::optional<int32_t> list_size) const {
    if (type->kind() == TypeKind::OptionalType) {
      if (std::holds_alternative<std::monostate>(argument)) return {};
      return make(argument, type->castRaw<c10::OptionalType>()->getElementType(), list_size);
    }
    if (type->kind() == TypeKind::ListType) return list(argument, type, list_size);
    return std::visit([&](const auto& value) { return single(value, type); }, argument);
  }

 private:
  static Operand constant(c10::IValue value) {
    return {.kind = Operand::Kind::kConstant, .constant = std::move(value)};
  }
  [[noreturn]] static void does_not_fit(const c10::TypePtr& type) {
    throw UsageError(
        fmt::format("takes {}, but is given a value of another type", type->annotation_str()));
  }

  Operand slot(Operand::Kind kind, const std::string& name) const {
    return {.kind = kind, .slot = find_slot_(name)};
  }

  Operand single(const TensorName& tensor, const c10::TypePtr& type) const {
    if (type->kind() != TypeKind::TensorType) does_not_fit(type);
    return slot(Operand::Kind::kValue, tensor.name);
  }
  Operand single(const ScalarName& scalar, const c10::TypePtr& type) const {
    const TypeKind kind = type->kind();
    if (kind == TypeKind::TensorType) return slot(Operand::Kind::kNumberTensor, scalar.name);
    if (is_float(kind)) return slot(Operand::Kind::kFloat, scalar.name);
    if (!is_integer(kind) && !is_bool(kind) && kind != TypeKind::NumberType) does_not_fit(type);
    return slot(Operand::Kind::kValue, scalar.name);
  }
  Operand single(bool value, const c10::TypePtr& type) const { return number(value, type); }
  Operand single(int64_t value, const c10::TypePtr& type) const { return number(value, type); }
  Operand single(double value, const c10::TypePtr& type) const { return number(value, type); }
  Operand single(const std::complex<double>& value, const c10::TypePtr& type) const {
    const c10::complex<double> number(value.real(), value.imag());
    if (type->kind() == TypeKind::TensorType) return constant(wrapped_number(number));
    if (type->kind() != TypeKind::NumberType && type->kind() != TypeKind::ComplexType) {
      does_not_fit(type);
    }
    return constant(number);
  }
  Operand single(const std::string& text, const c10::TypePtr& type) const {
    if (type->kind() != TypeKind::StringType) does_not_fit(type);
    return constant(text);
  }
  // Schemas have integers for these.
  Operand single(c10::ScalarType dtype, const c10::TypePtr& type) const {
    return code(static_cast<int64_t>(dtype), TypeKind::ScalarTypeType, type);
  }
  Operand single(c10::MemoryFormat format, const c10::TypePtr& type) const {
    return code(static_cast<int64_t>(format), TypeKind::MemoryFormatType, type);
  }
  Operand single(c10::Layout layout, const c10::TypePtr& type) const {
    return code(static_cast<int64_t>(layout), TypeKind::LayoutType, type);
  }
  Operand single(const DeviceName&, const c10::TypePtr& type) const {
    if (type->kind() != TypeKind::DeviceObjType) does_not_fit(type);
    return constant(device_);
  }
  template <typename T>
  Operand single(const T&, const c10::TypePtr& type) const {
    does_not_fit(type);
  }

  static Operand code(int64_t value, TypeKind own, const c10::TypePtr& type) {
    if (type->kind() != own && !is_integer(type->kind())) does_not_fit(type);
    return constant(value);
  }

  template <typename T>
  static Operand number(T value, const c10::TypePtr& type) {
    const TypeKind kind = type->kind();
    if (kind == TypeKind::TensorType) return constant(wrapped_number(value));
    if (kind == TypeKind::NumberType) return constant(value);
    if (is_float(kind)) return constant(static_cast<double>(value));
    if (is_bool(kind) && std::is_same_v<T, bool>) return constant(value);
    if (is_integer(kind) && !std::is_same_v<T, double>)
      return constant(static_cast<int64_t>(value));
    does_not_fit(type);
  }

  Operand list(const Argument& argument, const c10::TypePtr& type,
               std::optional<int32_t> size) const {
    Operand made{.kind = Operand::Kind::kList,
                 .element_type = type->castRaw<c10::ListType>()->getElementType()};
    const bool is_list =
        std::visit([&](const auto& value) { return add_elements(value, made); }, argument);
    if (!is_list) {
      // One element for each dimension.
      if (!size || std::holds_alternative<std::monostate>(argument)) does_not_fit(type);
      const Operand element = make(argument, made.element_type, {});
      made.elements.assign(static_cast<size_t>(*size), element);
    }
    for (const Operand& element : made.elements) {
      if (element.kind != Operand::Kind::kConstant) return made;
    }
    return constant(value_of(made, {}));
  }

  template <typename T>
  bool add_elements(const std::vector<T>& values, Operand& list) const {
    for (const auto& value : values) list.elements.push_back(element(T(value), list.element_type));
    return true;
  }
  template <typename T>
  bool add_elements(const T&, Operand&) const {
    return false;
  }

  Operand element(const std::optional<TensorName>& tensor, const c10::TypePtr& type) const {
    return tensor ? make(*tensor, type, {}) : make(std::monostate(), type, {});
  }
  template <typename T>
  Operand element(const std::variant<T, ScalarName>& value, const c10::TypePtr& type) const {
    return std::visit([&](const auto& one) { return make(Argument(one), type, {}); }, value);
  }
  template <typename T>
  Operand element(const T& value, const c10::TypePtr& type) const {
    return make(Argument(value), type, {});
  }

  c10::Device device_;
  const FindSlot& find_slot_;
};

double as_float(const c10::IValue& scalar) {
  if (scalar.isDouble()) return scalar.toDouble();
  if (scalar.isBool()) return scalar.toBool() ? 1 : 0;
  return static_cast<double>(scalar.toInt());
}

}  // namespace

Operand make_operand(const Argument& argument, const c10::TypePtr& type,
                     std::optional<int32_t> list_size, c10::Device device,
                     const FindSlot& find_slot) {
  return Maker(device, find_slot).make(argument, type, list_size);
}

c10::IValue value_of(const Operand& operand, const std::vector<c10::IValue>& slots) {
  switch (operand.kind) {
    case Operand::Kind::kConstant: return operand.constant;
    case Operand::Kind::kValue: return slots[operand.slot];
    case Operand::Kind::kFloat: return as_float(slots[operand.slot]);
    case Operand::Kind::kNumberTensor: return wrapped_number(slots[operand.slot].toScalar());
    case Operand::Kind::kList: break;
  }
  // Values of type SymInt are plain integers here.
  const bool is_integer_list = is_integer(operand.element_type->kind());
  c10::impl::GenericList list(is_integer_list ? c10::IntType::get() : operand.element_type);
  list.reserve(operand.elements.size());
  for (const Operand& element : operand.elements) list.push_back(value_of(element, slots));
  return list;
}

void visit_slots(const Operand& operand, const std::function<void(size_t)>& visit) {
  if (operand.kind == Operand::Kind::kList) {
    for (const Operand& element : operand.elements) visit_slots(element, visit);
  } else if (operand.kind != Operand::Kind::kConstant) {
    visit(operand.slot);
  }
}

}  // namespace gallop::model::exported
