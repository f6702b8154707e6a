#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::compile {

struct Graph;

/// bf16 copies of fp32 parameters that persist across calls: the update that changes a parameter
/// writes its copy as well, so that no step has to cast the weights.
///
/// A copy is valid as long as only graphs that write it change its parameter. Other changes are
/// detected by the parameters' version counters, which all operators increment. Writes through a
/// pointer or `tensor.data()` are not detected.
class Bf16WeightCache {
 public:
  /// Caches copies of these parameters, and of no others.
  explicit Bf16WeightCache(std::vector<at::Tensor> parameters)
      : parameters_(std::move(parameters)) {}

  /// The copy of the parameter `state`, with the same sizes and strides, created on demand;
  /// undefined if `state` is no such parameter, or only a part of it.
  at::Tensor of(const at::Tensor& state);

  /// Updates the copies of parameters that other operators have changed since the last call.
  void refresh();

  /// Ignores changes of version counters since refresh(), which a dry run has made.
  void ignore_trial_writes();

  /// Marks all copies as stale.
  void invalidate();

  /// Whether the graph changes a parameter without its copy.
  bool are_stale_after(const Graph& graph) const;

  /// Whether each copy equals its rounded parameter, bit for bit.
  bool is_consistent() const;

 private:
  struct Entry {
    at::Tensor parameter, copy;
    int64_t version = 0;  ///< Version of the parameter when it was copied.
  };

  std::vector<at::Tensor> parameters_;
  std::vector<Entry> entries_;
};

}  // namespace gallop::compile
