#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

// Internal to parallel/: what strategies share whose processes update different parameters.
namespace gallop::parallel {

/// The norm of gradients of which processes have parts, added up from the sums of blocks of
/// kernel::kNormChunk elements in the order of one process. Its bits are those of one process for
/// gradients in fp32 and bf16 on the CPU.
class SharedNorm {
 public:
  /// The norm of these parameters, as far as they are trained.
  explicit SharedNorm(const NamedTensors& parameters);

  /// Counts the gradient that `part` of the parameter of this index has whenever the norm is
  /// computed. Its first element is element `begin` of the parameter, a multiple of kNormChunk.
  void add(size_t index, const at::Tensor& part, int64_t begin = 0);
  /// Writes the sums of squares of what is here, and 0 elsewhere.
  void sum_here() const;
  /// What sum_here() writes, and processes sum: of each block, or one sum of all; fp64.
  const at::Tensor& sums() const { return sums_; }
  /// From the sums of all processes.
  at::Tensor norm() const;

 private:
  std::vector<int64_t> first_;  // The first block of each parameter.
  std::vector<at::Tensor> parts_;
  std::vector<int64_t> first_here_;  // The first block of each part.
  at::Tensor sums_;
  bool is_by_chunk_ = true;
};

/// The first of these tensors whose name is among the names that processes have found; empty if
/// none is.
std::string first_found(const NamedTensors& tensors, const std::vector<std::string>& found);

std::vector<std::string> names_of(const NamedTensors& tensors);

/// What a map has for the tensor that a state belongs to; null if it has nothing. Names of states
/// end in those of tensors.
template <typename Map>
const typename Map::mapped_type* find_for_state(const Map& by_name, const std::string& state) {
  for (size_t dot = state.find('.'); dot != std::string::npos; dot = state.find('.', dot + 1)) {
    const auto found = by_name.find(state.substr(dot + 1));
    if (found != by_name.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace gallop::parallel
