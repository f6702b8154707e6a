#include "gallop/model/exported/sample_inputs.h"

#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::model::exported {

namespace {

// The leaves of tuples, lists and dicts, in order.
void flatten(const c10::IValue& value, std::vector<c10::IValue>& leaves) {
  if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) flatten(item, leaves);
  } else if (value.isList() && !value.isTensorList()) {
    for (const c10::IValue& item : value.toListRef()) flatten(item, leaves);
  } else if (value.isTensorList()) {
    for (const at::Tensor& item : value.toTensorVector()) leaves.emplace_back(item);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) flatten(item.value(), leaves);
  } else {
    leaves.push_back(value);
  }
}

}  // namespace

std::vector<c10::IValue> sample_inputs(Archive& archive) {
  const std::string_view bytes = archive.sample_inputs(archive.training_program());
  std::vector<c10::IValue> leaves;
  if (bytes.empty()) return leaves;
  try {
    flatten(torch::jit::pickle_load(std::vector<char>(bytes.begin(), bytes.end())), leaves);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    throw DataError(fmt::format("{}: the sample inputs cannot be read: {}",
                                printable(archive.path().string()),
                                printable(what.substr(0, what.find('\n')))));
  }
  return leaves;
}

}  // namespace gallop::model::exported
