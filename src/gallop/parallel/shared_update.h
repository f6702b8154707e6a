#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

// Internal to parallel/: what strategies share whose processes update different parameters.
namespace gallop::parallel {

/// Whether the norm of such a parameter's gradient is added up in the order of one process.
bool is_summed_by_chunk(const at::Tensor& parameter);
/// Memory for the sums of squares of so many chunks, or for one sum of all; fp64.
at::Tensor make_norm_sums(const at::Tensor& like, int64_t chunks, bool is_by_chunk);
/// Writes the sums of squares of the gradients that are here, of which each begins with chunk
/// `first`; 0 elsewhere.
void sum_squares(const at::Tensor& sums, const std::vector<at::Tensor>& gradients,
                 const std::vector<int64_t>& first, bool is_by_chunk);
/// The norm, from the sums of all processes.
at::Tensor norm_of_all(const at::Tensor& sums, bool is_by_chunk);

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
