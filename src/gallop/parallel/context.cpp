#include "gallop/parallel/context.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/parallel/collectives_group.h"

namespace gallop::parallel {

namespace {

constexpr const char* kDegree = "context_parallel_degree";
constexpr const char* kRing = "ring";

class Context final : public Strategy {
 public:
  Context(const ContextConfig& config, Collectives& collectives, const ModelTensors& model)
      : groups_(context_mesh(config, collectives.size()), collectives),
        cp_(groups_.along({kContextAxis})),
        dp_(groups_.along({kReplicaAxis})),
        group_(cp_),
        is_ring_(config.context_parallel_method == kRing),
        all_(make_ddp({.bucket = config.bucket}, collectives, model)) {
    model.divide_tokens(group_, is_ring_ ? ContextMethod::kRing : ContextMethod::kUlysses);
  }

  Collectives& collectives() override { return all_->collectives(); }
  Collectives& data_parallel_group() override { return dp_; }
  Collectives* model_parallel_group() override { return &cp_; }
  Collectives* forward_group() override { return &cp_; }
  Collectives& evaluation_group() override { return dp_; }
  NamedTensors state() const override { return all_->state(); }
  const std::vector<std::string>& unused() const override { return all_->unused(); }
  std::string describe() const override {
    return fmt::format("{} {} x {} {}{}", kReplicaAxis, dp_.size(), kContextAxis, cp_.size(),
                       is_ring_ ? ", ring" : "");
  }

  void begin_gradient_sync(const Pass& pass) override { all_->begin_gradient_sync(pass); }
  void finish_gradient_sync() override { all_->finish_gradient_sync(); }
  void abort_sync() override { all_->abort_sync(); }
  // The collectives depend on the layers.
  std::optional<std::vector<PendingCollective>> collective_calls(
      int64_t /*passes*/) const override {
    return std::nullopt;
  }

 private:
  MeshGroups groups_;
  Collectives &cp_, &dp_;
  CollectivesGroup group_;
  bool is_ring_;
  std::unique_ptr<Strategy> all_;  // Sums gradients over tokens and replicas.
};

}  // namespace

void visit(config::Visitor& visitor, ContextConfig& config) {
  visitor.field({.name = kDegree,
                 .help = "processes that divide the tokens of a sequence; further processes are "
                         "replicas, each with its part of every batch; 0: all processes",
                 .min = 0},
                config.context_parallel_degree);
  visitor.field({.name = "context_parallel_method",
                 .help = "ulysses: all-to-alls exchange tokens for heads around attention; ring: "
                         "keys and values pass from process to process, for any number of heads",
                 .choices = {"ulysses", kRing}},
                config.context_parallel_method);
  visit_bucket_bytes(visitor, config.bucket);
}

DeviceMesh context_mesh(const ContextConfig& config, int processes) {
  const int degree =
      degree_of({fmt::format("parallel.{}", kDegree), config.context_parallel_degree}, processes);
  return DeviceMesh({{kReplicaAxis, processes / degree}, {kContextAxis, degree}}, processes);
}

std::unique_ptr<Strategy> make_context(const ContextConfig& config, Collectives& collectives,
                                       const ModelTensors& model) {
  if (collectives.size() == 1) return make_ddp({.bucket = config.bucket}, collectives, model);
  if (!model.parameters.front().tensor.is_cpu()) {
    throw UsageError(
        "parallel.name=context runs on CPUs only so far; use parallel.name=zero-2 on GPUs");
  }
  return std::make_unique<Context>(config, collectives, model);
}

}  // namespace gallop::parallel
