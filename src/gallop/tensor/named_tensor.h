#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop {

/// A tensor with its name in checkpoints, such as "layer1.0.conv1.weight".
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

using NamedTensors = std::vector<NamedTensor>;

std::vector<at::Tensor> tensors_in(const NamedTensors& named);

/// The tensor of that name; null if there is none.
const at::Tensor* find_tensor(const NamedTensors& tensors, std::string_view name);

/// Rows [begin, end) of each tensor of a batch; if these are all rows, no views are created.
NamedTensors slice_rows(const NamedTensors& batch, int64_t begin, int64_t end);

/// "no parameter is named 'x' (did you mean 'y'?); the model's parameters are a to z", for a glob
/// pattern that matches none.
std::string no_parameter_named(const std::string& pattern, const NamedTensors& parameters);

/// The differences between `source` and `target` in names, shapes and types, one indented line
/// each; empty if copying one into the other is possible.
std::string differences(const NamedTensors& source, const NamedTensors& target);

/// Copies every tensor of `source` into the one of the same name in `target`. Throws DataError with
/// all differences, without copying anything, if there are any; `source_name` is used in the
/// message.
void copy_by_name(const NamedTensors& source, const std::string& source_name,
                  const NamedTensors& target);

}  // namespace gallop
