#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/optim/updated_parameters.h"
#include "gallop/parallel/collectives.h"
#include "gallop/parallel/shard_layout.h"
#include "gallop/parallel/shared_update.h"
#include "gallop/tensor/logical_tensor.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

class ParameterBuckets;

/// The parameters of a model as this process updates them: views of its parts, with views of its
/// parts of the gradients' buckets as their gradients.
class ParameterShards final : public optim::UpdatedParameters {
 public:
  /// `option`: the one that divides the parameters, "parallel.name=zero-1". The buckets of trained
  /// parameters are those of the layout, and outlive it, as the collectives. `own`: see
  /// own_parts(). `places`: where the parameters are.
  ParameterShards(std::string option, NamedTensors parameters, ShardLayout layout,
                  const std::vector<at::Tensor>& own, Collectives& collectives,
                  ParameterBuckets& places);

  /// One for each parameter, in their order, with its name and number of dimensions: the parameter
  /// itself, a range of its elements in memory order, or no element.
  const NamedTensors& tensors() const override { return own_; }
  const std::string& option() const { return option_; }
  const NamedTensors& parameters() const { return parameters_; }
  const ShardLayout& layout() const { return layout_; }
  Collectives& collectives() const { return collectives_; }
  struct Bytes {
    int64_t here = 0, all = 0;
  };
  /// Bytes of the gradients of this process's parts, and of all.
  Bytes gradient_bytes() const;
  /// Bytes of the trained parameters that this process has between steps, and of all.
  Bytes parameter_bytes() const;

  bool are_parts() const override { return true; }
  at::Tensor gradient_norm() const override;
  std::string first_non_finite_gradient() const override;
  std::string first_non_finite_parameter() const override;

  /// Gives each process the parts of the trained parameters that others have updated: all of them,
  /// or if parameters are in parts at the moment, those that it keeps.
  void all_gather() const;
  /// After an update: all_gather(), or, if each pass gathers the parameters that it needs, only the
  /// parts that this process keeps.
  void share_update() const;

  /// The sums of the gradients of some parameters as a whole, each in the order of memory, from the
  /// parts of all processes.
  std::vector<at::Tensor> gather_gradients(const std::vector<size_t>& parameters) const;
  /// Replaces this process's parts of these gradients.
  void set_gradients(const std::vector<size_t>& parameters,
                     const std::vector<at::Tensor>& wholes) const;

  /// All parameters, of which this process has its parts.
  std::vector<LogicalTensor> logical_parameters() const;

  /// Tensors that gradient_norm() writes.
  NamedTensors state() const { return {{"norm_sums", norm_.sums()}}; }

 private:
  void make_own(const std::vector<at::Tensor>& gradients);
  std::string first_of_all(const std::string& own) const;

  std::string option_;
  NamedTensors parameters_;
  ShardLayout layout_;
  Collectives& collectives_;
  ParameterBuckets& places_;
  NamedTensors own_;
  SharedNorm norm_;
};

}  // namespace gallop::parallel
