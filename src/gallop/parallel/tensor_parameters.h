#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/optim/updated_parameters.h"
#include "gallop/parallel/collectives.h"
#include "gallop/parallel/divided_optimizer.h"
#include "gallop/tensor/logical_tensor.h"

namespace gallop::parallel {

/// The parameters of a model whose layers are divided: this process's parts of some of them, and
/// the others, which all processes update alike.
class TensorParameters final : public optim::UpdatedParameters {
 public:
  /// `divided`: those of which a process has a part; also parameters that are not trained and not
  /// among `parameters`. `collectives`, of the processes that have the parts, must outlive it.
  TensorParameters(NamedTensors parameters, const std::vector<LogicalTensor>& divided,
                   Collectives& collectives);

  const NamedTensors& tensors() const override { return parameters_; }
  bool are_parts() const override { return true; }
  at::Tensor gradient_norm() const override;
  std::string first_non_finite_gradient() const override;
  std::string first_non_finite_parameter() const override;

  Collectives& collectives() const { return collectives_; }
  /// All parameters and, behind them, those that are divided and not trained.
  const std::vector<LogicalTensor>& logical_parameters() const { return logical_; }
  /// Null for a tensor that every process has as a whole.
  const LogicalTensor* division_of(const std::string& name) const;
  /// Throws UsageError if the optimizer updates one of the divided parameters as a whole.
  /// `units`: of all parameters, by Optimizer::update_units().
  void require_divisible_update(const std::vector<optim::UpdateUnit>& units) const;

 private:
  // The first parameter that any process has found.
  std::string first_of_all(const std::string& own) const;

  NamedTensors parameters_;
  std::vector<LogicalTensor> logical_;
  std::map<std::string, size_t> places_;  // In `logical_`.
  Collectives& collectives_;
};

/// An optimizer of these parameters, whose state is divided as they are. Throws UsageError if it
/// keeps states of divided parameters that cannot be. `parameters` must outlive it.
std::unique_ptr<optim::Optimizer> make_tensor_optimizer(const TensorParameters& parameters,
                                                        const NamedTensors& buffers,
                                                        const MakeOptimizer& make);

}  // namespace gallop::parallel
