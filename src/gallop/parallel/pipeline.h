#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/parallel/pipeline_cut.h"
#include "gallop/parallel/pipeline_program.h"
#include "gallop/parallel/stage_parameters.h"
#include "gallop/parallel/strategy.h"

namespace gallop::parallel {

struct PipelineConfig {
  std::string schedule = "1f1b";
  int64_t stages_per_rank = 0;  ///< 0: the least that the schedule allows.
};

void visit(config::Visitor& visitor, PipelineConfig& config);

/// Pipeline parallelism (Huang et al., "GPipe", NeurIPS 2019): each process has consecutive blocks
/// of the model, its stages, through which the micro-batches of the whole batch pass. A process
/// computes and updates the parameters of its own stages alone.
class Pipeline final : public Strategy {
 public:
  /// Throws UsageError if the model cannot be cut into so many stages.
  Pipeline(const PipelineConfig& config, Collectives& collectives, const ModelTensors& model);

  Collectives& collectives() override { return collectives_; }
  NamedTensors state() const override { return {}; }
  const Pipeline* pipeline() const override { return this; }
  const optim::UpdatedParameters* updated() const override { return parameters_.get(); }
  std::unique_ptr<optim::Optimizer> make_optimizer(const NamedTensors& buffers,
                                                   const MakeOptimizer& make) const override {
    return make_stage_optimizer(*parameters_, buffers, make);
  }
  bool divides_batches() const override { return false; }
  void begin_gradient_sync(const Pass& /*pass*/) override {}
  void finish_gradient_sync() override {}

  int rank() const { return collectives_.rank(); }
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
  PipelineSchedule shape_;  // For some number of micro-batches.
  std::vector<StageBlocks> stages_;
  std::vector<std::string> tied_;
  std::unique_ptr<StageParameters> parameters_;
};

/// Throws UsageError if so many processes cannot compute batches of `rows` samples in so many
/// micro-batches, with the rule and the nearest numbers.
void check_pipeline(const PipelineConfig& config, int processes, int64_t micro_batches,
                    int64_t rows);

/// A single process has the whole model, as with make_ddp().
std::unique_ptr<Strategy> make_pipeline(const PipelineConfig& config, Collectives& collectives,
                                        const ModelTensors& model);

}  // namespace gallop::parallel
