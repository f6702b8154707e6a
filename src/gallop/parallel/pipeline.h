#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/parallel/data_parallel.h"
#include "gallop/parallel/mesh.h"
#include "gallop/parallel/model_parallel.h"
#include "gallop/parallel/pipeline_cut.h"
#include "gallop/parallel/pipeline_program.h"
#include "gallop/parallel/stage_parameters.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

struct PipelineConfig {
  std::string schedule = "1f1b";
  int64_t stages_per_rank = 0;           ///< 0: the least that the schedule allows.
  int64_t pipeline_parallel_degree = 0;  ///< Processes of a pipeline; 0: all.
  int64_t tensor_parallel_degree = 1;    ///< Processes that divide the layers of each stage.
  bool sequence_parallel = false;        ///< See TensorConfig.
  std::vector<std::string> tp_plan{};    ///< See TensorConfig.
  std::string data_parallel = "ddp";     ///< How pipelines share the update; or "zero-1".
};

void visit(config::Visitor& visitor, PipelineConfig& config);

/// The axes pp, dp_replicate or dp_shard, and tp. Throws UsageError if the degrees do not divide
/// the processes.
DeviceMesh pipeline_mesh(const PipelineConfig& config, int processes);

/// Pipeline parallelism (Huang et al., "GPipe", NeurIPS 2019): each process has consecutive blocks
/// of the model, its stages, through which the micro-batches of the whole batch pass. A process
/// computes and updates the parameters of its own stages alone. With a degree, there are several
/// such pipelines, each with its part of every batch, whose gradients are summed. With a tensor
/// parallel degree, the layers of each stage are divided among so many processes.
class Pipeline final : public ModelParallel {
 public:
  /// Throws UsageError if the model cannot be cut into so many stages.
  Pipeline(const PipelineConfig& config, Collectives& collectives, const ModelTensors& model);

  NamedTensors state() const override { return {}; }
  void begin_step(int64_t /*step*/) override { stage_parameters_->begin_step(); }
  const Pipeline* pipeline() const override { return this; }
  void begin_gradient_sync(const Pass& /*pass*/) override {}
  void finish_gradient_sync() override;

  /// In the pipeline.
  int rank() const { return stage_parameters_->collectives().rank(); }
  /// The blocks of each stage of the pipeline.
  const std::vector<StageBlocks>& stages() const { return stages_; }
  const StageParameters& parameters() const { return *stage_parameters_; }
  /// Names of the trained parameters that both the first and the last stage read.
  const std::vector<std::string>& tied() const { return tied_; }
  /// The schedule for so many micro-batches. Throws UsageError if it does not allow them.
  PipelineSchedule schedule(int64_t micro_batches) const;
  /// "1f1b, 2 stages: blocks 0-2 | 3-5".
  std::string describe() const override;

 private:
  Pipeline(const PipelineConfig& config, Collectives& collectives, const ModelTensors& model,
           const std::vector<double>& sizes);
  void sum_gradients();

  PipelineConfig config_;
  PipelineSchedule shape_;  // For some number of micro-batches.
  std::vector<StageBlocks> stages_;
  std::vector<std::string> tied_;
  std::unique_ptr<StageParameters> stage_parameters_;
  SharedStatistics statistics_;  // Statistics of this process's stages, over their replicas.
};

/// Throws UsageError if so many processes cannot compute batches of `rows` samples in so many
/// micro-batches each pipeline, with the rule and the nearest numbers.
void check_pipeline(const PipelineConfig& config, int processes, int64_t micro_batches,
                    int64_t rows);

/// A single process has the whole model, as with make_ddp().
std::unique_ptr<Strategy> make_pipeline(const PipelineConfig& config, Collectives& collectives,
                                        const ModelTensors& model);

}  // namespace gallop::parallel
