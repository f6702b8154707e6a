#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/parallel/parameter_buckets.h"
#include "gallop/tensor/named_tensor.h"
#include "gallop/tensor/tensor_memory.h"

// How zero-3 makes a model of which no process ever has all: once on the meta device, to find which
// process keeps what, and once more in the buckets.
namespace gallop::parallel {

/// Which of the tensors that a model creates are its parameters.
class CreationOrder final : public TensorMemory {
 public:
  /// On the meta device.
  at::Tensor empty(at::IntArrayRef sizes) override;

  /// For each tensor, in order of creation, its index among the parameters, if it is one. Empty if
  /// the model has not created all of those that are trained here.
  std::vector<std::optional<size_t>> parameters(const NamedTensors& parameters) const;

 private:
  std::vector<at::Tensor> created_;
};

/// Creates parameters at their places in buckets. As soon as the next one is created, this process
/// keeps only its part of it; of the last one, after ParameterBuckets::release_all().
class InitialParameters final : public TensorMemory {
 public:
  /// `order`: CreationOrder::parameters().
  InitialParameters(std::shared_ptr<const ParameterBuckets> places,
                    std::vector<std::optional<size_t>> order)
      : places_(std::move(places)), order_(std::move(order)) {}

  at::Tensor empty(at::IntArrayRef sizes) override;

 private:
  std::shared_ptr<const ParameterBuckets> places_;
  std::vector<std::optional<size_t>> order_;
  size_t next_ = 0;
  std::optional<size_t> last_;  // Parameter.
};

}  // namespace gallop::parallel
