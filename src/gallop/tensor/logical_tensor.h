#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop {

/// A tensor of a model or of its training, either divided among processes or whole in each of them.
struct LogicalTensor {
  /// The columns that a process has, or a range of their elements.
  struct Part {
    int rank = 0;
    int64_t begin = 0, end = 0;
    /// If several processes divide the same columns: the range of this process, in elements of
    /// [rows, columns] in the order of memory; if `last` is negative, all elements.
    int64_t first = 0, last = -1;
    int64_t size() const { return end - begin; }
  };

  /// Further processes that have the same parts: a part of process `rank` is also that of
  /// rank + apart, rank + 2 * apart and so on, `count` in all.
  struct Replicas {
    int count = 1, apart = 1;
  };

  std::string name;
  at::Tensor whole;  ///< Its sizes, strides and type: a tensor on the meta device.
  /// What this process has: the whole tensor if every process has it, otherwise [rows, columns of
  /// its part] in any shape, or anything without elements.
  at::Tensor local;
  /// The parts of all elements of the whole tensor, which is [rows, columns] in the order of
  /// memory; parts of the same columns are consecutive. Empty if every process has the whole
  /// tensor.
  std::vector<Part> parts{};
  int64_t rows = 1;
  Replicas replicas{};

  /// The process from which process `to` gets a part: that of its own replica.
  int giver(const Part& part, int to) const {
    return part.rank + to / replicas.apart % replicas.count * replicas.apart;
  }

  /// The parts of all processes, in order of ranks.
  std::vector<Part> parts_of_all() const;

  /// The number of elements of a part.
  int64_t elements_of(const Part& part) const {
    return part.last < 0 ? part.size() * rows : part.last - part.first;
  }
  /// The number of elements of the parts of a process.
  int64_t elements_in(int rank) const;

  bool is_replicated() const { return parts.empty(); }
  int64_t columns() const { return whole.numel() / rows; }
};

/// The tensors `whole` with their names.
NamedTensors wholes_of(const std::vector<LogicalTensor>& tensors);

/// Logical tensors for tensors that every process has as a whole.
std::vector<LogicalTensor> replicas_of(const NamedTensors& tensors);

/// Whether a process has only a part of any of them.
bool are_divided(const std::vector<LogicalTensor>& tensors);

}  // namespace gallop
