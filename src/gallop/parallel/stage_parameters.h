#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/optim/updated_parameters.h"
#include "gallop/parallel/collectives.h"
#include "gallop/parallel/divided_optimizer.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// Which process of a pipeline has the trained value of each tensor.
struct TensorOwners {
  std::map<std::string, int> ranks;  ///< By the names of parameters and buffers.
  /// Parameters that another process reads as well, and which one.
  std::map<std::string, int> readers{};
  int replicas = 1;  ///< Pipelines: ranks of the same stages are consecutive among those of all.
};

/// The parameters of a model as this process of a pipeline updates them: those of its stages.
class StageParameters final : public optim::UpdatedParameters {
 public:
  /// `statistics`: the buffers that steps write. `collectives`, of the pipeline, must outlive it.
  StageParameters(NamedTensors parameters, NamedTensors statistics, TensorOwners owners,
                  Collectives& collectives);

  /// One for each parameter, in their order, with its name and number of dimensions: the parameter
  /// itself, or no element.
  const NamedTensors& tensors() const override { return own_; }
  const NamedTensors& parameters() const { return parameters_; }
  Collectives& collectives() const { return collectives_; }
  /// The rank in the pipeline that has this parameter or buffer.
  int owner_of(const std::string& name) const { return owners_.ranks.at(name); }
  int replicas() const { return owners_.replicas; }
  bool is_here(const std::string& name) const { return owner_of(name) == collectives_.rank(); }

  bool are_parts() const override { return true; }
  /// The bits are those of one process for gradients in fp32 and bf16 on the CPU. A parameter that
  /// several stages read counts once.
  at::Tensor gradient_norm() const override;
  std::string first_non_finite_gradient() const override;
  std::string first_non_finite_parameter() const override;

  /// Gives each process the values of all parameters and statistics.
  void gather() const;
  /// Gives the values of parameters that a second process reads to that.
  void send_to_readers() const;

 private:
  // The first parameter that any process has found.
  std::string first_of_all(const std::string& own) const;

  NamedTensors parameters_, statistics_;
  TensorOwners owners_;
  Collectives& collectives_;
  NamedTensors own_;
  std::vector<size_t> trained_;  // The indices of those of this process that are trained.
  std::vector<int64_t> first_;   // The first chunk of each of them, among those of all.
  at::Tensor sums_;              // Of squares, of each chunk.
  bool is_by_chunk_ = true;
};

/// An optimizer whose state and updates are those of the parameters of this process. Where averaged
/// weights are exchanged with the trained ones, each process gets the values of all parameters.
/// `parameters` must outlive it; `buffers` are all of the model.
std::unique_ptr<optim::Optimizer> make_stage_optimizer(const StageParameters& parameters,
                                                       const NamedTensors& buffers,
                                                       const MakeOptimizer& make);

}  // namespace gallop::parallel
