#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/optim/updated_parameters.h"
#include "gallop/parallel/divided_optimizer.h"
#include "gallop/parallel/mesh.h"
#include "gallop/parallel/parameter_shards.h"
#include "gallop/parallel/shared_update.h"
#include "gallop/parallel/stage_parameters.h"
#include "gallop/parallel/strategy.h"
#include "gallop/tensor/logical_tensor.h"

namespace gallop::parallel {

/// How the processes of a mesh divide the parameters of a model.
struct MeshDivision {
  /// Along `axis`: those of which a process has a part, by ranks there; also parameters that are
  /// not trained and not among those of the model.
  std::vector<LogicalTensor> tensors{};
  std::string axis = kTensorAxis;     ///< The last one of the mesh: tp or ep.
  StageParameters* stages = nullptr;  ///< Along pp; null: every process has all layers.
  /// Along dp_shard, the parameters of this process's stages; null: replicas update the same.
  const ParameterShards* shards = nullptr;
  /// For each rank along the axis, replica_shards() of all stages. Empty without shards.
  std::vector<std::map<std::string, std::vector<LogicalTensor::Part>>> shard_parts{};
};

/// The parameters of a model as a process of a mesh of the axes pp, dp_replicate or dp_shard, and
/// tp or ep updates them: those of its stages, its parts of these along the last axis, and its
/// shards of the parts.
class MeshParameters final : public optim::UpdatedParameters {
 public:
  /// `parameters`: this process's parts along the axis, of all stages. The groups, stages and
  /// shards must outlive it.
  MeshParameters(NamedTensors parameters, MeshDivision division, MeshGroups& groups);
  ~MeshParameters() override = default;
  MeshParameters(const MeshParameters&) = delete;
  MeshParameters& operator=(const MeshParameters&) = delete;

  /// One for each parameter of the model, in their order, with its name and number of dimensions:
  /// the parameter itself, a range of its elements in memory order, or no element.
  const NamedTensors& tensors() const override { return own_; }
  bool are_parts() const override { return true; }
  /// The bits do not depend on the sizes of the axes pp and dp_shard.
  at::Tensor gradient_norm() const override;
  std::string first_non_finite_gradient() const override;
  std::string first_non_finite_parameter() const override;

  const NamedTensors& parameters() const { return parameters_; }
  StageParameters* stages() const { return division_.stages; }
  const ParameterShards* shards() const { return division_.shards; }
  int rank() const { return groups_.all().rank(); }
  /// What gradient_norm() writes.
  const at::Tensor& norm_sums() const { return norm_.sums(); }
  /// What divides the tensors, for messages: "parallel.name=tensor".
  const char* option() const;

  /// What processes have between steps: all parameters and, behind them, those that are divided
  /// along the axis and not trained.
  std::vector<LogicalTensor> logical_parameters() const;
  /// Which process updates which part of this parameter or buffer, and its whole size.
  LogicalTensor update_of(const NamedTensor& tensor) const;
  bool is_divided(const std::string& name) const { return divided_.contains(name); }
  /// Throws UsageError if the optimizer updates one of the parameters that are divided there as
  /// a whole. `units`: of all parameters, by Optimizer::update_units().
  void require_divisible_update(const std::vector<optim::UpdateUnit>& units) const;

 private:
  void add_own(size_t index, const std::map<std::string, size_t>& shard_indices);
  // The first parameter that any process has found.
  std::string first_of_all(const std::string& own) const;

  NamedTensors parameters_;
  MeshDivision division_;
  MeshGroups& groups_;
  Collectives& parts_;      // Along the axis of the division.
  Collectives& partition_;  // It divides what the processes of a rank along that axis have.
  std::map<std::string, const LogicalTensor*> divided_;
  NamedTensors own_;
  SharedNorm norm_;
};

/// An optimizer of these parameters, whose state is divided as their update. After an update, and
/// where averaged weights are exchanged with the trained ones, processes get what others have
/// updated and they need. Throws UsageError if it keeps states of divided parameters that cannot
/// be. `parameters` must outlive it; `buffers` are all of the model.
std::unique_ptr<optim::Optimizer> make_mesh_optimizer(const MeshParameters& parameters,
                                                      const NamedTensors& buffers,
                                                      const MakeOptimizer& make);

}  // namespace gallop::parallel
