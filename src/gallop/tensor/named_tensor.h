#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop {

/// A tensor and the name it has in checkpoints, such as "layer1.0.conv1.weight".
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

using NamedTensors = std::vector<NamedTensor>;

/// Rows [begin, end) of each tensor of a batch; all of them come without the cost of views.
NamedTensors slice_rows(const NamedTensors& batch, int64_t begin, int64_t end);

/// How `source` differs from `target` in names, shapes and types: every difference on a line of its
/// own, indented; empty where copying one into the other is possible.
std::string differences(const NamedTensors& source, const NamedTensors& target);

/// Copies every tensor of `source` into the one of the same name in `target`. Throws DataError with
/// all differences, and copies nothing, where there are any; `source_name` is named in it.
void copy_by_name(const NamedTensors& source, const std::string& source_name,
                  const NamedTensors& target);

}  // namespace gallop
