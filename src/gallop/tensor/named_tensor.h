#pragma once

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

/// Throws DataError unless `source` has exactly the names of `target`, each with the same shape and
/// type. Every difference is told, one a line, after `source_name`, such as a file's path.
void check_same_tensors(const NamedTensors& source, const std::string& source_name,
                        const NamedTensors& target);

/// Copies every tensor of `source` into the one of the same name in `target`, after
/// check_same_tensors(), so that either all are copied or none.
void copy_by_name(const NamedTensors& source, const std::string& source_name,
                  const NamedTensors& target);

}  // namespace gallop
