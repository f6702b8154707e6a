#include "gallop/parallel/pipeline.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/parallel/ddp.h"
#include "gallop/parallel/packed.h"
#include "gallop/parallel/sums.h"
#include "gallop/parallel/zero.h"

namespace gallop::parallel {

namespace {

// Every schedule allows twice as many micro-batches as ranks.
PipelineSchedule some_schedule(const PipelineConfig& config, int ranks) {
  return make_pipeline_schedule(config.schedule, ranks, 2 * ranks,
                                static_cast<int>(config.stages_per_rank));
}

ModelParallelConfig config_of(const PipelineConfig& config) {
  ModelParallelConfig all{.pipeline_parallel_degree = config.pipeline_parallel_degree,
                          .sequence_parallel = config.sequence_parallel,
                          .tp_plan = config.tp_plan,
                          .data_parallel = config.data_parallel};
  if (config.tensor_parallel_degree != 1) {
    all.tensor_parallel_degree = config.tensor_parallel_degree;
  }
  return all;
}

std::vector<double> sizes_of(const ModelTensors& model) {
  std::map<std::string, int64_t> elements;
  for (const auto& [name, tensor] : model.parameters) elements[name] = tensor.numel();
  std::vector<double> sizes;
  for (const auto& names : model.sequence.tensors) {
    double size = 1;  // Blocks without parameters are not free, either.
    for (const std::string& name : names) {
      const auto found = elements.find(name);
      if (found != elements.end()) size += static_cast<double>(found->second);
    }
    sizes.push_back(size);
  }
  return sizes;
}

void require_blocks(const ModelTensors& model, const PipelineSchedule& shape) {
  const auto blocks = static_cast<int>(model.sequence.tensors.size());
  if (blocks == 0) {
    throw UsageError(
        "parallel.name=pipeline cuts a model between its blocks, which this model does not define "
        "(Model::block_sequence()); gpt without experts, vit, resnet, mlp-mixer, mlp, layers "
        "without padding, and exported programs of several modules do: use one of them, or "
        "parallel.name=zero-2");
  }
  if (blocks >= shape.stages()) return;
  const int fits = blocks / shape.stages_per_rank;
  throw UsageError(fmt::format(
      "parallel.name=pipeline: {} processes with {} stage{} each need at least {} blocks, and the "
      "model has {}; {}",
      shape.ranks, shape.stages_per_rank, shape.stages_per_rank == 1 ? "" : "s", shape.stages(),
      blocks,
      fits >= 2 ? fmt::format("start at most {} processes, or use a deeper model", fits)
                : "use a deeper model"));
}

TensorOwners owners_of(const ModelTensors& model, const std::vector<StageBlocks>& stages,
                       const PipelineSchedule& shape, const std::vector<std::string>& tied) {
  TensorOwners owners;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (int64_t block = stages[stage].begin; block < stages[stage].end; ++block) {
      for (const std::string& name : model.sequence.tensors[static_cast<size_t>(block)]) {
        owners.ranks[name] = shape.rank_of(static_cast<int>(stage));
      }
    }
  }
  for (const NamedTensors* list : {&model.parameters, &model.buffers}) {
    for (const auto& [name, tensor] : *list) {
      if (!owners.ranks.contains(name)) {
        throw InternalError(fmt::format("pipeline: '{}' is in no block", name));
      }
    }
  }
  for (const std::string& name : tied) owners.readers[name] = shape.rank_of(shape.stages() - 1);
  return owners;
}

void check_schedule(const PipelineConfig& config, int processes, int micro_batches) {
  try {
    make_pipeline_schedule(config.schedule, processes, micro_batches,
                           static_cast<int>(config.stages_per_rank));
  } catch (const UsageError& error) {
    throw UsageError(
        fmt::format("parallel.name=pipeline with schedule={} and {} processes: {} "
                    "(train.gradient_accumulation is the number of micro-batches)",
                    config.schedule, processes, error.what()));
  }
}

// As many as there are processes, or more if the schedule needs them.
int least_micro_batches(const PipelineConfig& config, int processes) {
  for (int count = processes;; ++count) {
    try {
      check_schedule(config, processes, count);
      return count;
    } catch (const UsageError&) {
      if (count == 2 * processes) throw;  // All schedules allow these.
    }
  }
}

}  // namespace

void visit(config::Visitor& visitor, PipelineConfig& config) {
  std::vector<std::string> names;
  for (const auto& kind : pipeline_schedules()) names.emplace_back(kind.name);
  visitor.field({.name = "schedule",
                 .help = "schedule of the passes; the command 'pipeline' compares schedules",
                 .choices = names},
                config.schedule);
  visitor.field({.name = "stages_per_rank",
                 .help = "stages of each rank; 0: the minimum of the schedule",
                 .min = 0,
                 .max = 64},
                config.stages_per_rank);
  visit_pipeline_degree(visitor, config.pipeline_parallel_degree);
  visit_tensor_parallel(visitor, config.tensor_parallel_degree, config.sequence_parallel,
                        config.tp_plan, /*is_required=*/false);
  visit_data_parallel(visitor, config.data_parallel, {"ddp", "zero-1"});
}

DeviceMesh pipeline_mesh(const PipelineConfig& config, int processes) {
  return model_parallel_mesh(config_of(config), processes);
}

void check_pipeline(const PipelineConfig& config, int processes, int64_t micro_batches,
                    int64_t rows) {
  const DeviceMesh mesh = pipeline_mesh(config, processes);
  const int64_t replicas = mesh.batch_part(0).parts;
  processes = mesh.size(kPipelineAxis);
  const int least = least_micro_batches(config, processes);
  if (micro_batches < least) {
    throw UsageError(
        fmt::format("parallel.name=pipeline with {} processes and schedule={} needs at least {} "
                    "micro-batches, and train.gradient_accumulation is {}; set it to {}, or to {} "
                    "for a smaller pipeline bubble",
                    processes, config.schedule, least, micro_batches, least, 4 * processes));
  }
  if (rows < micro_batches * replicas) {
    const int64_t most = rows / replicas;
    throw UsageError(fmt::format(
        "parallel.name=pipeline cuts batches into {} micro-batches "
        "(train.gradient_accumulation){}, "
        "and data.batch_size is {}; set data.batch_size to at least {}{}",
        micro_batches,
        replicas > 1 ? fmt::format(" in each of {} pipelines", replicas) : std::string(), rows,
        micro_batches * replicas,
        most >= least ? fmt::format(", or train.gradient_accumulation to at most {}", most)
                      : std::string()));
  }
  check_schedule(config, processes, static_cast<int>(micro_batches));
}

// The model is cut before its layers are divided, so that all processes cut it alike.
Pipeline::Pipeline(const PipelineConfig& config, Collectives& collectives,
                   const ModelTensors& model)
    : Pipeline(config, collectives, model, sizes_of(model)) {}

Pipeline::Pipeline(const PipelineConfig& config, Collectives& collectives,
                   const ModelTensors& model, const std::vector<double>& sizes)
    : ModelParallel(config_of(config), collectives, model),
      config_(config),
      shape_(some_schedule(config, pipeline_group().size())),
      statistics_({}) {
  require_blocks(model, shape_);
  if (model.update_units.size() != model.parameters.size()) {
    throw UsageError(
        "parallel.name=pipeline divides the update among processes, which this optimizer does not "
        "support: it does not declare which parameters it updates independently of each other "
        "(Optimizer::update_units()); use parallel.name=ddp, or another optimizer");
  }
  stages_ = cut_blocks(sizes, shape_.stages());
  for (const auto& [name, tensor] : model.parameters) {
    if (tensor.requires_grad() && std::ranges::count(model.sequence.tied, name) > 0) {
      tied_.push_back(name);
    }
  }
  stage_parameters_ = std::make_unique<StageParameters>(
      model.parameters, model.buffers, owners_of(model, stages_, shape_, tied_), pipeline_group());
  const ModelTensors own = tensors_of(model, stage_parameters_.get(), rank());
  std::unique_ptr<Strategy> shards;
  if (divides_replicas()) {
    shards = make_sharded_replicas(option(), ReplicaSums::kAfterPasses, data_parallel_group(), own);
  } else if (data_parallel_group().size() > 1) {
    statistics_ = SharedStatistics(tensors_in(own.buffers));
  }
  set_parameters(model, std::move(shards), stage_parameters_.get());
}

void Pipeline::finish_gradient_sync() {
  if (replicas() != nullptr) {
    replicas()->begin_gradient_sync({});
    replicas()->finish_gradient_sync();
  } else {
    sum_gradients();
  }
  sync_gradients_along_tp();
}

// A pipeline without samples has no gradients.
void Pipeline::sum_gradients() {
  Collectives& replicas = data_parallel_group();
  if (replicas.size() == 1) return;
  const at::NoGradGuard no_grad;
  const SubgroupScope group(replicas);
  statistics_.start();
  std::vector<at::Tensor> gradients;
  for (const auto& [name, tensor] : parameters_here().tensors()) {
    if (!tensor.requires_grad()) continue;
    if (!tensor.grad().defined()) tensor.mutable_grad() = at::zeros_like(tensor);
    gradients.push_back(tensor.grad());
  }
  all_reduce_packed(gradients);
  statistics_.finish(replicas.size());
}

PipelineSchedule Pipeline::schedule(int64_t micro_batches) const {
  return make_pipeline_schedule(config_.schedule, shape_.ranks, static_cast<int>(micro_batches),
                                shape_.stages_per_rank);
}

std::string Pipeline::describe() const {
  std::string blocks;
  for (const StageBlocks& stage : stages_) {
    blocks += fmt::format("{}{}", blocks.empty() ? "" : " | ", stage.begin);
    if (stage.end - stage.begin > 1) blocks += fmt::format("-{}", stage.end - 1);
  }
  const std::string axes = ModelParallel::describe();
  return fmt::format("{}{}{}, {} stages: blocks {}", axes, axes.empty() ? "" : ", ",
                     config_.schedule, stages_.size(), blocks);
}

std::unique_ptr<Strategy> make_pipeline(const PipelineConfig& config, Collectives& collectives,
                                        const ModelTensors& model) {
  if (collectives.size() == 1) return make_ddp({}, collectives, model);
  if (config.tensor_parallel_degree != 1 && !model.parameters.front().tensor.is_cpu()) {
    throw UsageError(
        "parallel.tensor_parallel_degree divides layers on CPUs only so far; omit it on GPUs");
  }
  return std::make_unique<Pipeline>(config, collectives, model);
}

}  // namespace gallop::parallel
