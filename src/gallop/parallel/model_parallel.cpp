#include "gallop/parallel/model_parallel.h"

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "gallop/parallel/packed.h"
#include "gallop/parallel/sums.h"
#include "gallop/parallel/zero.h"

namespace gallop::parallel {

namespace {

constexpr const char *kPipelineDegree = "pipeline_parallel_degree",
                     *kTensorDegree = "tensor_parallel_degree";

ParallelizedModel divide(const ModelTensors& model, const CollectivesGroup& group) {
  return group.size() > 1 ? model.parallelize(group) : ParallelizedModel();
}

const char* replica_axis(const ModelParallelConfig& config) {
  return config.data_parallel == "ddp" ? kReplicaAxis : kShardAxis;
}

}  // namespace

void visit_pipeline_degree(config::Visitor& visitor, int64_t& degree) {
  visitor.field({.name = kPipelineDegree,
                 .help = "processes of a pipeline; further processes are replicas of it, each with "
                         "its part of every batch; 0: all processes",
                 .min = 0},
                degree);
}

void visit_tensor_parallel(config::Visitor& visitor, int64_t& degree, bool& sequence_parallel,
                           std::vector<std::string>& tp_plan, bool is_required) {
  visitor.field({.name = "sequence_parallel",
                 .help = "norms, dropouts and residuals are computed for a part of the tokens in "
                         "each process, which saves memory"},
                sequence_parallel);
  visitor.field({.name = "tp_plan",
                 .help = "how linear layers of exported programs are divided: a list of "
                         "MODULE=colwise, =rowwise or =replicate, with * for any characters; []: "
                         "all for which it is possible"},
                tp_plan);
  visitor.field(
      {.name = kTensorDegree,
       .help = is_required ? "processes that divide the layers; further processes are replicas, "
                             "each with its part of every batch; 0: all processes"
                           : "processes that divide the layers of each stage; 1: none",
       .min = is_required ? 0 : 1},
      degree);
}

void visit_data_parallel(config::Visitor& visitor, std::string& data_parallel,
                         const std::vector<std::string>& choices) {
  visitor.field({.name = "data_parallel",
                 .help = "how replicas share the update: ddp: each makes the whole update; zero-1: "
                         "the optimizer state is sharded; zero-2: the gradients, too",
                 .choices = choices},
                data_parallel);
}

DeviceMesh model_parallel_mesh(const ModelParallelConfig& config, int processes) {
  const auto& [stages, parts, sequence_parallel, tp_plan, data_parallel] = config;
  const DegreeOption of_parts{fmt::format("parallel.{}", kTensorDegree), parts.value_or(1)};
  const DegreeOption of_stages{fmt::format("parallel.{}", kPipelineDegree), stages.value_or(1)};
  const int tp = parts ? degree_of(of_parts, processes) : 1;
  const int pp = stages ? degree_of(of_stages, processes, of_parts, tp) : 1;
  return DeviceMesh(
      {{kPipelineAxis, pp}, {replica_axis(config), processes / tp / pp}, {kTensorAxis, tp}},
      processes);
}

ModelParallel::ModelParallel(const ModelParallelConfig& config, Collectives& collectives,
                             const ModelTensors& model)
    : config_(config),
      groups_(model_parallel_mesh(config, collectives.size()), collectives),
      pp_(groups_.along({kPipelineAxis})),
      dp_(groups_.along({replica_axis(config)})),
      tp_(groups_.along({kTensorAxis})),
      model_(groups_.along({kPipelineAxis, kTensorAxis})),
      evaluation_(groups_.along({kPipelineAxis, replica_axis(config)})),
      layers_(tp_, config.sequence_parallel, config.tp_plan),
      divided_(divide(model, layers_)) {}

ModelTensors ModelParallel::tensors_of(const ModelTensors& model, const StageParameters* stages,
                                       int stage) const {
  const auto is_of_stage = [&](const std::string& name) {
    return stages == nullptr || stages->owner_of(name) == stage;
  };
  ModelTensors own;
  own.divided = divided_.divided;
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    if (!is_of_stage(model.parameters[i].name)) continue;
    own.parameters.push_back(model.parameters[i]);
    if (i < model.update_units.size()) own.update_units.push_back(model.update_units[i]);
  }
  for (const NamedTensor& buffer : model.buffers) {
    if (is_of_stage(buffer.name)) own.buffers.push_back(buffer);
  }
  return own;
}

void ModelParallel::set_parameters(const ModelTensors& model, std::unique_ptr<Strategy> replicas,
                                   StageParameters* stages) {
  replicas_ = std::move(replicas);
  MeshDivision division{.tensors = divided_.divided, .stages = stages, .shards = shards()};
  for (int t = 0; division.shards != nullptr && t < tp_.size(); ++t) {
    auto& parts = division.shard_parts.emplace_back();
    for (int stage = 0; stage < pp_.size(); ++stage) {
      parts.merge(
          replica_shards(tensors_of(model, stages, stage), dp_.size(), static_cast<size_t>(t)));
    }
  }
  parameters_.emplace(model.parameters, std::move(division), groups_);
  parameters_->require_divisible_update(model.update_units);
  const std::set<std::string> partial(divided_.partial_gradients.begin(),
                                      divided_.partial_gradients.end());
  const NamedTensors& own = shards() != nullptr ? shards()->parameters() : model.parameters;
  for (size_t i = 0; i < own.size(); ++i) {
    const auto& [name, tensor] = own[i];
    if (!partial.contains(name) || !tensor.requires_grad()) continue;
    if (stages != nullptr && !stages->is_here(name)) continue;
    partial_.push_back(tensor);
    partial_shards_.push_back(i);
  }
  if (tp_.size() == 1) return;
  for (const auto& [name, tensor] : parameters_->tensors()) {
    if (!partial.contains(name) && !parameters_->is_divided(name)) replicated_.push_back(tensor);
  }
}

void ModelParallel::sync_gradients_along_tp() const {
  sum_partial_gradients();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& tensor : replicated_) {
    if (tensor.grad().defined() && tensor.numel() > 0) gradients.push_back(tensor.grad());
  }
  const SubgroupScope group(tp_);
  broadcast_packed(gradients, tp_.size());
}

void ModelParallel::sum_partial_gradients() const {
  if (partial_.empty()) return;
  std::vector<at::Tensor> gradients;
  if (shards() != nullptr) {
    // Whole ones, so that processes add them in the same order as without shards.
    const SubgroupScope group(dp_);
    gradients = shards()->gather_gradients(partial_shards_);
  } else {
    for (const at::Tensor& parameter : partial_) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
  }
  {
    const SubgroupScope group(tp_);
    all_reduce_packed(gradients);
  }
  if (shards() != nullptr) shards()->set_gradients(partial_shards_, gradients);
}

std::string ModelParallel::describe() const {
  std::string text = mesh().describe();
  if (tp_.size() == 1) return text;
  const auto add = [&](const std::string& what) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", what);
  };
  int64_t matrices = 0, divided = 0;
  for (const auto& [name, tensor] : parameters_->parameters()) {
    if (tensor.dim() < 2) continue;
    matrices += 1;
    divided += parameters_->is_divided(name) ? 1 : 0;
  }
  add(fmt::format("{} of {} matrices divided", divided, matrices));
  if (config_.sequence_parallel) add("with sequence parallelism");
  return text;
}

}  // namespace gallop::parallel
