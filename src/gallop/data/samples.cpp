#include "gallop/data/samples.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

Field with_role(Field field, FieldRole role) {
  field.role = role;
  return field;
}

}  // namespace

Fields::Fields(std::vector<Field> list) : list_(std::move(list)) {
  size_t inputs = 0, targets = 0;
  for (size_t i = 0; i < list_.size(); ++i) {
    const Field& field = list_[i];
    for (size_t j = 0; j < i; ++j) {
      if (list_[j].name == field.name) {
        throw UsageError(fmt::format("two fields of the data are named '{}'", field.name));
      }
    }
    if (field.padding && field.shape.sizes.empty()) {
      throw UsageError(fmt::format("field '{}' is padded, but a scalar has no length", field.name));
    }
    if (field.role == FieldRole::kInput && inputs++ == 0) input_ = i;
    if (field.role == FieldRole::kTarget && targets++ == 0) target_ = i;
  }
  if (inputs == 0 || targets != 1) {
    throw UsageError(fmt::format(
        "the fields of the data have {} inputs and {} targets; there must be at least one input "
        "and exactly one target",
        inputs, targets));
  }
}

Fields::Fields(Field input, Field target)
    : Fields(std::vector<Field>{with_role(std::move(input), FieldRole::kInput),
                                with_role(std::move(target), FieldRole::kTarget)}) {}

size_t Fields::find(std::string_view name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < list_.size(); ++i) {
    if (list_[i].name == name) return i;
    names.push_back(list_[i].name);
  }
  throw UsageError(fmt::format("the data have no field '{}'; the fields are {}", name,
                               join_names(names, "and")));
}

std::string Samples::describe(int64_t index) const { return fmt::format("sample {}", index + 1); }

}  // namespace gallop::data
