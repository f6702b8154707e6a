#include "gallop/parallel/expert.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/parallel/collectives_group.h"
#include "gallop/parallel/mesh_parameters.h"

namespace gallop::parallel {

namespace {

constexpr const char* kDegree = "expert_parallel_degree";

// The parameters that are divided, or the others with the buffers.
ModelTensors part_of(const ModelTensors& model, const std::vector<LogicalTensor>& divided,
                     bool is_divided) {
  std::set<std::string> names;
  for (const LogicalTensor& one : divided) names.insert(one.name);
  ModelTensors part;
  std::copy_if(model.parameters.begin(), model.parameters.end(),
               std::back_inserter(part.parameters),
               [&](const NamedTensor& one) { return names.contains(one.name) == is_divided; });
  if (!is_divided) part.buffers = model.buffers;
  return part;
}

class Expert final : public Strategy {
 public:
  Expert(const ExpertConfig& config, Collectives& collectives, const ModelTensors& model)
      : groups_(expert_mesh(config, collectives.size()), collectives),
        ep_(groups_.along({kExpertAxis})),
        dp_(groups_.along({kReplicaAxis})),
        group_(ep_),
        divided_(model.divide_experts(group_)),
        parameters_(model.parameters, {.tensors = divided_.divided, .axis = kExpertAxis}, groups_),
        others_(make_ddp({.bucket = config.bucket}, collectives,
                         part_of(model, divided_.divided, false))) {
    parameters_.require_divisible_update(model.update_units);
    if (dp_.size() == 1) return;
    replicas_ = make_ddp({.bucket = config.bucket}, dp_, part_of(model, divided_.divided, true));
  }

  Collectives& collectives() override { return groups_.all(); }
  Collectives* forward_group() override { return &ep_; }
  Collectives& evaluation_group() override { return groups_.all(); }
  bool divides_forward_by_samples() const override { return true; }
  const optim::UpdatedParameters* updated() const override { return &parameters_; }
  std::unique_ptr<optim::Optimizer> make_optimizer(const NamedTensors& buffers,
                                                   const MakeOptimizer& make) const override {
    return make_mesh_optimizer(parameters_, buffers, make);
  }
  std::vector<LogicalTensor> parameters_in_parts() const override {
    return parameters_.logical_parameters();
  }
  bool model_is_in_parts() const override { return true; }
  NamedTensors state() const override {
    NamedTensors all = others_->state();
    if (!replicas_) return all;
    for (auto& [name, tensor] : replicas_->state()) all.push_back({"experts." + name, tensor});
    return all;
  }
  const std::vector<std::string>& unused() const override { return others_->unused(); }
  std::string describe() const override {
    return fmt::format("{} {} x {} {}", kReplicaAxis, dp_.size(), kExpertAxis, ep_.size());
  }

  void begin_gradient_sync(const Pass& pass) override {
    others_->begin_gradient_sync(pass);
    if (replicas_) replicas_->begin_gradient_sync(pass);
  }
  void finish_gradient_sync() override {
    others_->finish_gradient_sync();
    if (replicas_) replicas_->finish_gradient_sync();
  }
  void abort_sync() override {
    others_->abort_sync();
    if (replicas_) replicas_->abort_sync();
  }
  // The collectives depend on the layers.
  std::optional<std::vector<PendingCollective>> collective_calls(
      int64_t /*passes*/) const override {
    return std::nullopt;
  }

 private:
  MeshGroups groups_;
  Collectives &ep_, &dp_;
  CollectivesGroup group_;
  ParallelizedModel divided_;
  MeshParameters parameters_;
  std::unique_ptr<Strategy> others_;    // Sums the gradients of parameters that all have.
  std::unique_ptr<Strategy> replicas_;  // Those of experts, if several processes have the same.
};

}  // namespace

void visit(config::Visitor& visitor, ExpertConfig& config) {
  visitor.field({.name = kDegree,
                 .help = "processes that divide the experts of each layer; further processes have "
                         "replicas of the experts; 0: all processes",
                 .min = 0},
                config.expert_parallel_degree);
  visit_bucket_bytes(visitor, config.bucket);
}

DeviceMesh expert_mesh(const ExpertConfig& config, int processes) {
  const int degree =
      degree_of({fmt::format("parallel.{}", kDegree), config.expert_parallel_degree}, processes);
  return DeviceMesh({{kReplicaAxis, processes / degree}, {kExpertAxis, degree}}, processes);
}

std::unique_ptr<Strategy> make_expert(const ExpertConfig& config, Collectives& collectives,
                                      const ModelTensors& model) {
  if (collectives.size() == 1) return make_ddp({.bucket = config.bucket}, collectives, model);
  if (!model.parameters.front().tensor.is_cpu()) {
    throw UsageError(
        "parallel.name=expert runs on CPUs only so far; use parallel.name=zero-2 on GPUs");
  }
  return std::make_unique<Expert>(config, collectives, model);
}

}  // namespace gallop::parallel
