#include "gallop/parallel/context.h"
#include "gallop/parallel/ddp.h"
#include "gallop/parallel/deterministic.h"
#include "gallop/parallel/expert.h"
#include "gallop/parallel/local_sgd.h"
#include "gallop/parallel/pipeline.h"
#include "gallop/parallel/strategy.h"
#include "gallop/parallel/tensor.h"
#include "gallop/parallel/zero.h"

namespace gallop::parallel {

StrategyRegistry built_in_strategies() {
  StrategyRegistry registry("strategy");
  registry.add("ddp", "each process has the whole model and its slice of each batch", make_ddp);
  registry
      .add("deterministic", "the same bits for 1, 2, 3, 4, 6 or 12 processes, at a cost",
           make_deterministic)
      .add("zero-1", "as ddp, but the optimizer state and the update are sharded", make_zero1)
      .add("zero-2", "as zero-1, and the gradients are sharded", make_zero2)
      .add("zero-3", "as zero-2, and the parameters are sharded (FSDP)", make_zero3)
      .add("pipeline", "each process has some of the layers, through which micro-batches pass",
           make_pipeline)
      .add("tensor", "each process has some heads and channels of each layer (Megatron-LM)",
           make_tensor)
      .add("context", "each process has some tokens of each text; Ulysses or ring attention",
           make_context)
      .add("expert", "as ddp, but each process has some of the experts of each layer (GShard)",
           make_expert)
      .add("local-sgd",
           "each process trains independently, and weights are averaged every few steps",
           make_local_sgd)
      .add("diloco", "as local-sgd, with an outer optimizer of the averaged changes (DiLoCo)",
           make_diloco);
  return registry;
}

DeviceMesh mesh_of(const config::Component& strategy, int processes) {
  const config::Options& options = strategy.options();
  if (const auto* const tensor = dynamic_cast<const config::OptionsOf<TensorConfig>*>(&options)) {
    return tensor_mesh(tensor->config, processes);
  }
  if (const auto* const pipeline =
          dynamic_cast<const config::OptionsOf<PipelineConfig>*>(&options)) {
    return pipeline_mesh(pipeline->config, processes);
  }
  if (const auto* const context = dynamic_cast<const config::OptionsOf<ContextConfig>*>(&options)) {
    return context_mesh(context->config, processes);
  }
  if (const auto* const expert = dynamic_cast<const config::OptionsOf<ExpertConfig>*>(&options)) {
    return expert_mesh(expert->config, processes);
  }
  if (const auto* const zero3 = dynamic_cast<const config::OptionsOf<Zero3Config>*>(&options)) {
    return zero3_mesh(zero3->config, processes);
  }
  const bool is_sharded = divides_update(strategy.name());
  return DeviceMesh({{is_sharded ? kShardAxis : kReplicaAxis, processes}}, processes);
}

std::string data_parallel_of(const config::Component& strategy) {
  const config::Options& options = strategy.options();
  if (const auto* const tensor = dynamic_cast<const config::OptionsOf<TensorConfig>*>(&options)) {
    return tensor->config.data_parallel;
  }
  if (const auto* const pipeline =
          dynamic_cast<const config::OptionsOf<PipelineConfig>*>(&options)) {
    return pipeline->config.data_parallel;
  }
  return strategy.name();
}

Shares shares_of(const std::string& strategy, int64_t processes) {
  if (strategy == "zero-1") return {.state = processes};
  if (strategy == "zero-2") return {.gradients = processes, .state = processes};
  if (strategy == "zero-3") return {processes, processes, processes};
  return {};
}

Shares shares_of(const config::Component& strategy, int processes) {
  const DeviceMesh mesh = mesh_of(strategy, processes);
  const int64_t parts = mesh.size(kTensorAxis), stages = mesh.size(kPipelineAxis);
  Shares of_replicas = shares_of(data_parallel_of(strategy), mesh.batch_part(0).parts);
  if (of_replicas.parameters > 1) of_replicas.parameters = mesh.size(kShardAxis);
  return {.parameters = parts * of_replicas.parameters,
          .gradients = parts * stages * of_replicas.gradients,
          .state = parts * stages * of_replicas.state};
}

bool divides_update(const std::string& strategy) {
  return strategy == "pipeline" || strategy == "tensor" || strategy == "expert" ||
         shares_of(strategy, 2).state > 1;
}

bool trains_replicas(const std::string& strategy) {
  return strategy == "local-sgd" || strategy == "diloco";
}

}  // namespace gallop::parallel
