#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Device.h>

#include "gallop/model/exported/argument.h"

namespace gallop::model::exported {

/// An argument of an operator: a constant, or what makes it from the values of the graph.
struct Operand {
  enum class Kind {
    kConstant,
    kValue,         ///< The value in `slot`.
    kFloat,         ///< The scalar in `slot` as a floating-point number.
    kNumberTensor,  ///< The scalar in `slot` as a tensor without dimensions, see wrapped_number().
    kList,          ///< `elements`, in a list of `element_type`.
  };
  Kind kind = Kind::kConstant;
  c10::IValue constant{};
  size_t slot = 0;
  std::vector<Operand> elements{};
  c10::TypePtr element_type{};
};

/// Finds the slot of a value by its name.
using FindSlot = std::function<size_t(const std::string& name)>;

/// The operand for an argument of the schema's type, by the rules of Python's argument parser: an
/// integer may stand for a floating-point number, a scalar for a tensor or for a list of
/// `list_size` equal elements. Throws UsageError, "takes int[], but is given a string", if it does
/// not fit.
Operand make_operand(const Argument& argument, const c10::TypePtr& type,
                     std::optional<int32_t> list_size, c10::Device device,
                     const FindSlot& find_slot);

/// Makes the argument of a call.
c10::IValue value_of(const Operand& operand, const std::vector<c10::IValue>& slots);

/// Calls `visit` with every slot that the operand reads.
void visit_slots(const Operand& operand, const std::function<void(size_t)>& visit);

}  // namespace gallop::model::exported
