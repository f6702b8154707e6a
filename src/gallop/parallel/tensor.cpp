#include "gallop/parallel/tensor.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/parallel/collectives_group.h"
#include "gallop/parallel/ddp.h"
#include "gallop/parallel/packed.h"
#include "gallop/parallel/tensor_parameters.h"

namespace gallop::parallel {

namespace {

constexpr const char* kReplicas = "dp_replicate";
constexpr const char* kParts = "tp";
constexpr const char* kDegree = "tensor_parallel_degree";
constexpr int64_t kPieceBytes = 25 << 20;

// Whose ranks are those of all processes.
ParallelizedModel in_replicas(ParallelizedModel model, const DeviceMesh& mesh) {
  for (LogicalTensor& one : model.divided) {
    one.replicas = {.count = mesh.size(kReplicas), .apart = mesh.size(kParts)};
  }
  return model;
}

class Tensor final : public Strategy {
 public:
  Tensor(const TensorConfig& config, Collectives& collectives, const ModelTensors& model)
      : collectives_(collectives),
        mesh_(tensor_mesh(config, collectives.size())),
        tp_(mesh_, collectives, {kParts}),
        dp_(mesh_, collectives, {kReplicas}),
        group_(tp_.collectives(), config.sequence_parallel),
        model_(in_replicas(model.parallelize(group_), mesh_)),
        parameters_(model.parameters, model_.divided, tp_.collectives()) {
    if (dp_.collectives().size() > 1) {
      replicas_ = make_ddp({}, dp_.collectives(),
                           {.parameters = model.parameters, .buffers = model.buffers});
    }
    parameters_.require_divisible_update(model.update_units);
    for (const std::string& name : model_.partial_gradients) {
      // Null for one that is not trained.
      const at::Tensor* const parameter = find_tensor(model.parameters, name);
      if (parameter != nullptr && parameter->requires_grad()) partial_.push_back(*parameter);
    }
  }

  Collectives& collectives() override { return collectives_; }
  Collectives& data_parallel_group() override { return dp_.collectives(); }
  Collectives* model_parallel_group() override { return &tp_.collectives(); }
  NamedTensors state() const override { return replicas_ ? replicas_->state() : NamedTensors(); }
  const optim::UpdatedParameters* updated() const override { return &parameters_; }
  std::unique_ptr<optim::Optimizer> make_optimizer(const NamedTensors& buffers,
                                                   const MakeOptimizer& make) const override {
    return make_tensor_optimizer(parameters_, buffers, make);
  }
  std::vector<LogicalTensor> parameters_in_parts() const override {
    return parameters_.logical_parameters();
  }
  bool model_is_in_parts() const override { return true; }
  std::string describe() const override {
    std::string axes = replicas_ ? fmt::format("{} {} x {} {}", kReplicas, mesh_.size(kReplicas),
                                               kParts, mesh_.size(kParts))
                                 : "";
    if (!group_.sequence_parallel()) return axes;
    return fmt::format("{}{}with sequence parallelism", axes, replicas_ ? ", " : "");
  }

  void begin_gradient_sync(const Pass& pass) override {
    if (replicas_) replicas_->begin_gradient_sync(pass);
  }
  void finish_gradient_sync() override {
    note_unused(parameters_.tensors());
    if (replicas_) replicas_->finish_gradient_sync();
    sum_partial_gradients();
  }
  // The collectives depend on the layers.
  std::optional<std::vector<PendingCollective>> collective_calls(
      int64_t /*passes*/) const override {
    return std::nullopt;
  }

 private:
  // Of what each process has computed for its tokens alone.
  void sum_partial_gradients() const {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : partial_) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
    const SubgroupScope group(tp_.collectives());
    all_reduce_packed(gradients, kPieceBytes);
  }

  Collectives& collectives_;
  DeviceMesh mesh_;
  AxisGroup tp_, dp_;
  CollectivesGroup group_;
  ParallelizedModel model_;
  TensorParameters parameters_;
  std::vector<at::Tensor> partial_;     // Parameters whose gradients have to be summed.
  std::unique_ptr<Strategy> replicas_;  // Sums gradients over them; null if there is one.
};

}  // namespace

void visit(config::Visitor& visitor, TensorConfig& config) {
  visitor.field({.name = "sequence_parallel",
                 .help = "norms, dropouts and residuals are computed for a part of the tokens in "
                         "each process, which takes less memory"},
                config.sequence_parallel);
  visitor.field(
      {.name = kDegree,
       .help = "processes that divide the layers; the others have replicas, each with its "
               "part of every batch. 0: all processes",
       .min = 0},
      config.tensor_parallel_degree);
}

DeviceMesh tensor_mesh(const TensorConfig& config, int processes) {
  const int degree =
      degree_of(config.tensor_parallel_degree, processes, fmt::format("parallel.{}", kDegree));
  return DeviceMesh({{kReplicas, processes / degree}, {kParts, degree}}, processes);
}

std::unique_ptr<Strategy> make_tensor(const TensorConfig& config, Collectives& collectives,
                                      const ModelTensors& model) {
  if (collectives.size() == 1) return make_ddp({}, collectives, model);
  if (!model.parameters.front().tensor.is_cpu()) {
    throw UsageError(
        "parallel.name=tensor runs on CPUs only so far; take parallel.name=zero-2 on GPUs");
  }
  return std::make_unique<Tensor>(config, collectives, model);
}

}  // namespace gallop::parallel
