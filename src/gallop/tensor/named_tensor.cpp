#include "gallop/tensor/named_tensor.h"

#include <map>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop {

namespace {

using Index = std::map<std::string_view, const at::Tensor*>;

Index index_of(const NamedTensors& tensors) {
  Index index;
  for (const auto& [name, tensor] : tensors) {
    if (!index.emplace(name, &tensor).second) {
      throw InternalError(fmt::format("two tensors are named '{}'", printable(name)));
    }
  }
  return index;
}

std::string describe(const at::Tensor& tensor) {
  return fmt::format("{} [{}]", c10::toString(tensor.scalar_type()),
                     fmt::join(tensor.sizes().begin(), tensor.sizes().end(), ", "));
}

}  // namespace

std::vector<at::Tensor> tensors_in(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(named.size());
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

const at::Tensor* find_tensor(const NamedTensors& tensors, std::string_view name) {
  for (const NamedTensor& one : tensors) {
    if (one.name == name) return &one.tensor;
  }
  return nullptr;
}

NamedTensors slice_rows(const NamedTensors& batch, int64_t begin, int64_t end) {
  if (end - begin == batch.front().tensor.size(0)) return batch;
  NamedTensors rows;
  for (const auto& [name, tensor] : batch) rows.push_back({name, tensor.slice(0, begin, end)});
  return rows;
}

std::string no_parameter_named(const std::string& pattern, const NamedTensors& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parameters) names.push_back(name);
  const std::string nearest = nearest_name(pattern, names);
  return fmt::format(
      "no parameter is named '{}'{}; the model's parameters are {} to {}", printable(pattern),
      nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", printable(nearest)),
      printable(names.front()), printable(names.back()));
}

std::string differences(const NamedTensors& source, const NamedTensors& target) {
  const Index given = index_of(source);
  const Index wanted = index_of(target);
  std::string problems;
  for (const auto& [name, tensor] : target) {
    const auto found = given.find(name);
    if (found == given.end()) {
      problems += fmt::format("\n  {}: missing", printable(name));
    } else if (found->second->sizes() != tensor.sizes() ||
               found->second->scalar_type() != tensor.scalar_type()) {
      problems += fmt::format("\n  {}: is {}, expected {}", printable(name),
                              describe(*found->second), describe(tensor));
    }
  }
  for (const auto& [name, tensor] : source) {
    if (!wanted.contains(name)) problems += fmt::format("\n  {}: not expected", printable(name));
  }
  return problems;
}

void copy_by_name(const NamedTensors& source, const std::string& source_name,
                  const NamedTensors& target) {
  if (const std::string problems = differences(source, target); !problems.empty()) {
    throw DataError(fmt::format("{} does not fit the recipe that it is loaded into:{}",
                                printable(source_name), problems));
  }
  const at::NoGradGuard no_grad;
  const Index given = index_of(source);
  for (const auto& [name, tensor] : target) tensor.copy_(*given.at(name));
}

}  // namespace gallop
