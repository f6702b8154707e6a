#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/parallel/collectives_group.h"
#include "gallop/parallel/mesh.h"
#include "gallop/parallel/mesh_parameters.h"
#include "gallop/parallel/strategy.h"

// Internal to parallel/: what strategies share whose processes divide the layers of a model, and
// replicas of it the batches.
namespace gallop::parallel {

/// How many processes divide a model along pp and along tp, 0 for all that are left; the others
/// have replicas. An axis without a degree has one process.
struct ModelParallelConfig {
  std::optional<int64_t> pipeline_parallel_degree{}, tensor_parallel_degree{};
  bool sequence_parallel = false;
  std::vector<std::string> tp_plan{};
  std::string data_parallel = "ddp";  ///< "zero-1", "zero-2": replicas divide the update.
};

/// The options of such strategies. `is_required`: whether layers are always divided.
void visit_pipeline_degree(config::Visitor& visitor, int64_t& degree);
void visit_tensor_parallel(config::Visitor& visitor, int64_t& degree, bool& sequence_parallel,
                           std::vector<std::string>& tp_plan, bool is_required);
void visit_data_parallel(config::Visitor& visitor, std::string& data_parallel,
                         const std::vector<std::string>& choices);

/// The axes pp, dp_replicate or dp_shard, and tp. Throws UsageError, with the nearest numbers, if
/// the degrees do not divide the processes.
DeviceMesh model_parallel_mesh(const ModelParallelConfig& config, int processes);

class ModelParallel : public Strategy {
 public:
  Collectives& collectives() override { return groups_.all(); }
  Collectives& data_parallel_group() override { return dp_; }
  Collectives* model_parallel_group() override { return &model_; }
  Collectives* forward_group() override { return tp_.size() > 1 ? &tp_ : nullptr; }
  Collectives& evaluation_group() override { return evaluation_; }
  const optim::UpdatedParameters* updated() const override { return &*parameters_; }
  std::unique_ptr<optim::Optimizer> make_optimizer(const NamedTensors& buffers,
                                                   const MakeOptimizer& make) const override {
    return make_mesh_optimizer(*parameters_, buffers, make);
  }
  const ParameterShards* shards() const override {
    return replicas_ ? replicas_->shards() : nullptr;
  }
  const std::vector<std::string>& unused() const override {
    return replicas_ ? replicas_->unused() : Strategy::unused();
  }
  std::vector<LogicalTensor> parameters_in_parts() const override {
    return tp_.size() > 1 ? parameters_->logical_parameters() : std::vector<LogicalTensor>();
  }
  bool model_is_in_parts() const override { return tp_.size() > 1; }
  /// The axes, and whether sequences are divided along tp.
  std::string describe() const override;

 protected:
  /// Divides the layers of the model along tp.
  ModelParallel(const ModelParallelConfig& config, Collectives& collectives,
                const ModelTensors& model);
  /// Must be called once by the constructor of a subclass, with what sums gradients over replicas;
  /// null: nothing, or the subclass itself. `stages` must outlive it.
  void set_parameters(const ModelTensors& model, std::unique_ptr<Strategy> replicas,
                      StageParameters* stages);
  /// Must be called after gradients have been summed over replicas. Sums those over the processes
  /// along tp that each has computed for its tokens alone, and gives all of these processes the
  /// gradients of the first one where each has computed the same: different processors, and steps
  /// that are compiled for parts of different sizes, may round differently.
  void sync_gradients_along_tp() const;

  const DeviceMesh& mesh() const { return groups_.mesh(); }
  Collectives& pipeline_group() { return pp_; }
  Strategy* replicas() const { return replicas_.get(); }
  const MeshParameters& parameters_here() const { return *parameters_; }
  bool divides_replicas() const { return config_.data_parallel != "ddp" && dp_.size() > 1; }
  /// "parallel.data_parallel=zero-1".
  std::string option() const { return "parallel.data_parallel=" + config_.data_parallel; }
  /// The parameters and buffers of a stage, for what sums their gradients; of all without stages.
  ModelTensors tensors_of(const ModelTensors& model, const StageParameters* stages,
                          int stage) const;

 private:
  void sum_partial_gradients() const;

  ModelParallelConfig config_;
  MeshGroups groups_;
  Collectives &pp_, &dp_, &tp_, &model_, &evaluation_;
  CollectivesGroup layers_;  // As the layers see the processes along tp.
  ParallelizedModel divided_;
  std::unique_ptr<Strategy> replicas_;
  std::optional<MeshParameters> parameters_;
  std::vector<at::Tensor> partial_;     // Parameters whose gradients have to be summed.
  std::vector<size_t> partial_shards_;  // Their indices among the shards.
  std::vector<at::Tensor> replicated_;  // What all along tp update alike, other than these.
};

}  // namespace gallop::parallel
