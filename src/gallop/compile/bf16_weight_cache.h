#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::compile {

struct Graph;

/// bf16 copies of fp32 parameters that stay from call to call: the update that changes a parameter
/// writes its copy as well, so that no step has to convert the weights.
///
/// A copy is up to date as long as only graphs that write it change its parameter. Other changes
/// are told by the parameters' version counters, which all operators count: but not writing through
/// a pointer or through `tensor.data()`.
class Bf16WeightCache {
 public:
  /// Of these parameters, and no others.
  explicit Bf16WeightCache(std::vector<at::Tensor> parameters)
      : parameters_(std::move(parameters)) {}

  /// The copy of the parameter that `state` is, of the same sizes and strides, made where there is
  /// none yet; undefined where `state` is no such parameter, or not all of it.
  at::Tensor of(const at::Tensor& state);

  /// Copies the parameters again that others have changed since the last time.
  void refresh();

  /// What has been counted since refresh() was a trial call, and changed nothing.
  void ignore_trial_writes();

  /// All are to be copied again.
  void invalidate();

  /// Whether the graph changes a parameter without its copy.
  bool are_stale_after(const Graph& graph) const;

  /// Whether each copy is what its parameter is when rounded, bit for bit.
  bool is_consistent() const;

 private:
  struct Entry {
    at::Tensor parameter, copy;
    int64_t version = 0;  ///< Of the parameter when it was copied.
  };

  std::vector<at::Tensor> parameters_;
  std::vector<Entry> entries_;
};

}  // namespace gallop::compile
