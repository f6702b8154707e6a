#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/parallel/data_parallel.h"
#include "gallop/parallel/mesh.h"
#include "gallop/parallel/pipeline_cut.h"
#include "gallop/parallel/pipeline_program.h"
#include "gallop/parallel/stage_parameters.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

struct PipelineConfig {
  std::string schedule = "1f1b";
  int64_t stages_per_rank = 0;           ///< 0: the least that the schedule allows.
  int64_t pipeline_parallel_degree = 0;  ///< Processes of a pipeline; 0: all.
};

void visit(config::Visitor& visitor, PipelineConfig& config);

/// The axes pp and dp_replicate. Throws UsageError if the degree does not divide the processes.
DeviceMesh pipeline_mesh(const PipelineConfig& config, int processes);

/// Pipeline parallelism (Huang et al., "GPipe", NeurIPS 2019): each process has consecutive blocks
/// of the model, its stages, through which the micro-batches of the whole batch pass. A process
/// computes and updates the parameters of its own stages alone. With a degree, there are several
/// such pipelines, each with its part of every batch, whose gradients are summed.
class Pipeline final : public Strategy {
 public:
  /// Throws UsageError if the model cannot be cut into so many stages.
  Pipeline(const PipelineConfig& config, Collectives& collectives, const ModelTensors& model);

  Collectives& collectives() override { return collectives_; }
  Collectives& data_parallel_group() override { return dp_.collectives(); }
  Collectives* model_parallel_group() override { return &pp_.collectives(); }
  NamedTensors state() const override { return {}; }
  const Pipeline* pipeline() const override { return this; }
  const optim::UpdatedParameters* updated() const override { return parameters_.get(); }
  std::unique_ptr<optim::Optimizer> make_optimizer(const NamedTensors& buffers,
                                                   const MakeOptimizer& make) const override {
    return make_stage_optimizer(*parameters_, buffers, make);
  }
  void begin_gradient_sync(const Pass& /*pass*/) override {}
  void finish_gradient_sync() override;

  /// In the pipeline.
  int rank() const { return pp_.collectives().rank(); }
  /// The blocks of each stage of the pipeline.
  const std::vector<StageBlocks>& stages() const { return stages_; }
  const StageParameters& parameters() const { return *parameters_; }
  /// Names of the trained parameters that both the first and the last stage read.
  const std::vector<std::string>& tied() const { return tied_; }
  /// The schedule for so many micro-batches. Throws UsageError if it does not allow them.
  PipelineSchedule schedule(int64_t micro_batches) const;
  /// "1f1b, 2 stages: blocks 0-2 | 3-5".
  std::string describe() const override;

 private:
  Collectives& collectives_;
  PipelineConfig config_;
  DeviceMesh mesh_;
  AxisGroup pp_, dp_;
  PipelineSchedule shape_;  // For some number of micro-batches.
  std::vector<StageBlocks> stages_;
  std::vector<std::string> tied_;
  std::unique_ptr<StageParameters> parameters_;
  SharedStatistics statistics_;  // Of this process's stages, over their replicas.
};

/// Throws UsageError if so many processes cannot compute batches of `rows` samples in so many
/// micro-batches each pipeline, with the rule and the nearest numbers.
void check_pipeline(const PipelineConfig& config, int processes, int64_t micro_batches,
                    int64_t rows);

/// A single process has the whole model, as with make_ddp().
std::unique_ptr<Strategy> make_pipeline(const PipelineConfig& config, Collectives& collectives,
                                        const ModelTensors& model);

}  // namespace gallop::parallel
