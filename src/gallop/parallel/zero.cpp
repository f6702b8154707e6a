#include "gallop/parallel/zero.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"
#include "gallop/parallel/block_gathers.h"
#include "gallop/parallel/data_parallel.h"
#include "gallop/parallel/parameter_buckets.h"
#include "gallop/parallel/parameter_shards.h"
#include "gallop/parallel/rank_order_sums.h"
#include "gallop/parallel/sharded_optimizer.h"

namespace gallop::parallel {

namespace {

constexpr const char* kZero3 = "parallel.name=zero-3";
constexpr const char* kShardDegree = "data_parallel_shard_degree";

// For each parameter, the number of the block that it belongs to, from the last to the first, as
// their gradients come; the number of blocks for those outside of them.
std::vector<size_t> groups_of(const ModelTensors& model) {
  std::map<std::string, size_t> groups;
  const size_t blocks = model.blocks.size();
  for (size_t block = 0; block < blocks; ++block) {
    for (const std::string& name : model.blocks[block]) groups[name] = blocks - 1 - block;
  }
  std::vector<size_t> all;
  for (const auto& parameter : model.parameters) {
    const auto found = groups.find(parameter.name);
    all.push_back(found != groups.end() ? found->second : blocks);
  }
  return all;
}

// `groups`: of each parameter; empty for one of all. `tp_rank`: of the processes along tp that have
// other parts of ModelTensors::divided, the one whose parts are divided.
ShardLayout layout_of(const std::string& option, const ZeroConfig& config, int processes,
                      const ModelTensors& model, const std::vector<size_t>& groups = {},
                      std::optional<size_t> tp_rank = {}) {
  if (model.update_units.size() != model.parameters.size()) {
    throw UsageError(
        fmt::format("{} divides the update among processes, which this optimizer does not support: "
                    "it does not declare which parameters it updates independently of each other "
                    "(Optimizer::update_units()); use parallel.name=ddp, or another optimizer",
                    option));
  }
  std::map<std::string, const LogicalTensor*> divided;
  for (const LogicalTensor& one : model.divided) divided.emplace(one.name, &one);
  std::vector<ParameterShape> shapes;
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    const at::Tensor& tensor = model.parameters[i].tensor;
    const auto found = divided.find(model.parameters[i].name);
    const LogicalTensor* const whole = found != divided.end() ? found->second : nullptr;
    optim::UpdateUnit unit = model.update_units[i];
    // How an element is rounded depends on its position in the tensor that the optimizer has.
    unit.is_whole = unit.is_whole || tensor.scalar_type() == at::kBFloat16;
    shapes.push_back({.name = model.parameters[i].name,
                      .elements = whole != nullptr && tp_rank
                                      ? whole->elements_of(whole->parts[*tp_rank])
                                      : tensor.numel(),
                      .type = tensor.scalar_type(),
                      .is_trained = tensor.requires_grad(),
                      .unit = unit,
                      .group = groups.empty() ? 0 : groups[i],
                      .is_part = whole != nullptr});
  }
  std::vector<size_t> order = in_gradient_order(model);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shapes[a].group < shapes[b].group; });
  return ShardLayout(shapes, order, *parse_bytes(config.bucket), processes);
}

// The trained parameters of each bucket.
std::vector<std::vector<at::Tensor>> lists_of(const ShardLayout& layout,
                                              const NamedTensors& parameters) {
  std::vector<std::vector<at::Tensor>> lists;
  for (const ShardLayout::Bucket& bucket : layout.buckets()) {
    if (!bucket.is_trained) break;
    auto& list = lists.emplace_back();
    for (const size_t i : bucket.parameters) list.push_back(parameters[i].tensor);
  }
  return lists;
}

std::vector<at::Tensor> in_one(const std::vector<std::vector<at::Tensor>>& lists) {
  std::vector<at::Tensor> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::vector<std::vector<int64_t>> sizes_of(const ShardLayout& layout) {
  std::vector<std::vector<int64_t>> sizes;
  for (const ShardLayout::Bucket& bucket : layout.buckets()) {
    if (bucket.is_trained) sizes.push_back(bucket.sizes);
  }
  return sizes;
}

// The buckets of a layout, and this process's part of each. Moves the parameters to buckets, too.
struct Shards {
  ShardLayout layout;
  std::unique_ptr<ParameterBuckets> places;
  std::vector<std::vector<at::Tensor>> lists;
  GradientBuckets buckets;
  std::vector<at::Tensor> own;

  Shards(ShardLayout layout_, const ModelTensors& model, GradientBuckets::Memory memory,
         ParameterBuckets::Keeps keeps, const ParameterBuckets::Group& group)
      : layout(std::move(layout_)),
        places(std::make_unique<ParameterBuckets>(model.parameters, layout, keeps, group)),
        lists(lists_of(layout, model.parameters)),
        buckets(lists, memory),
        own(own_parts(buckets, sizes_of(layout), group.rank)) {
    places->take(model.parameters);
  }
};

class Zero : public DataParallel {
 public:
  /// `option`: see ParameterShards.
  Zero(const std::string& option, const ZeroConfig& config, Collectives& collectives,
       const ModelTensors& model, Shards shards)
      : DataParallel(collectives, model, config.batch_norm == "synchronized", in_one(shards.lists),
                     std::move(shards.buckets),
                     [&](GradientBuckets& kept) {
                       return make_rank_order_sums(kept, sizes_of(shards.layout), shards.own,
                                                   /*gathers=*/false);
                     }),
        places_(std::move(shards.places)),
        shards_(option, model.parameters, std::move(shards.layout), shards.own, collectives,
                *places_) {}

  const ParameterShards* shards() const override { return &shards_; }
  const optim::UpdatedParameters* updated() const override { return &shards_; }
  std::unique_ptr<optim::Optimizer> make_optimizer(const NamedTensors& buffers,
                                                   const MakeOptimizer& make) const override {
    return make_sharded_optimizer(shards_, buffers, make);
  }
  NamedTensors state() const override {
    NamedTensors all = DataParallel::state();
    for (const auto& one : shards_.state()) all.push_back(one);
    for (const auto& one : places_->named()) all.push_back(one);
    return all;
  }

 protected:
  ParameterBuckets& places() { return *places_; }
  const ParameterBuckets& places() const { return *places_; }

 private:
  std::unique_ptr<ParameterBuckets> places_;
  ParameterShards shards_;
};

// The trained buckets of each block, and those of other parameters.
BlockGathers::Config gathers_of(const ShardLayout& layout, const std::vector<size_t>& groups,
                                size_t blocks) {
  BlockGathers::Config config{.blocks = std::vector<std::vector<size_t>>(blocks)};
  for (size_t i = 0; i < layout.buckets().size(); ++i) {
    const ShardLayout::Bucket& bucket = layout.buckets()[i];
    if (!bucket.is_trained) break;
    const size_t group = groups[bucket.parameters.front()];
    (group < blocks ? config.blocks[blocks - 1 - group] : config.others).push_back(i);
  }
  return config;
}

class Zero3 final : public Zero {
 public:
  Zero3(const Zero3Config& config, std::unique_ptr<MeshGroups> groups, const ModelTensors& model,
        Shards shards, BlockGathers::Config gathers)
      : Zero(kZero3, config.zero, groups->all(), model, std::move(shards)),
        groups_(std::move(groups)),
        gathers_(places(), with_reduction(std::move(gathers), config)) {
    defer_all_reduce();
  }

  BlockHooks* block_hooks() override { return &gathers_; }
  void begin_step(int64_t /*step*/) override { release_parameters(); }
  void release_parameters() override {
    if (places().is_whole()) places().release_all();
  }
  void gather_parameters() override {
    if (places().is_whole()) return;
    const CollectivesScope scope(collectives());
    places().gather_all();
  }
  std::vector<LogicalTensor> parameters_in_parts() const override {
    return shards()->logical_parameters();
  }
  std::string describe() const override { return groups_->mesh().describe(); }
  void parameters_replaced() override {
    const CollectivesScope scope(collectives());
    places().share_with_replicas();
  }
  bool model_is_in_parts() const override { return !places().is_whole(); }
  void begin_forward() override { gathers_.begin_forward(); }

  void begin_gradient_sync(const Pass& pass) override {
    gathers_.end_forward();
    DataParallel::begin_gradient_sync(pass);
  }
  void finish_gradient_sync() override {
    gathers_.finish();
    DataParallel::finish_gradient_sync();
  }
  void abort_sync() override {
    gathers_.abort();
    DataParallel::abort_sync();
  }

  std::optional<std::vector<PendingCollective>> collective_calls(int64_t passes) const override {
    // Those of some of the processes are not described.
    if (shares_batch_norm() || places().has_replicas()) return {};
    const std::vector<PendingCollective> of_buckets = calls_of_buckets();
    const auto reduce = [&](size_t block) {
      std::vector<PendingCollective> calls;
      for (const size_t bucket : gathers_.buckets_of(block)) calls.push_back(of_buckets[bucket]);
      return calls;
    };
    std::vector<PendingCollective> all;
    for (int64_t pass = 0; pass < passes; ++pass) {
      append(all, gathers_.forward_calls());
      if (pass + 1 == passes) append(all, calls_of_statistics());
      append(all, gathers_.backward_calls(reduce));
    }
    return all;
  }

 private:
  BlockGathers::Config with_reduction(BlockGathers::Config gathers, const Zero3Config& config) {
    gathers.reshard_after_forward = config.reshard_after_forward;
    gathers.reduce = [this](size_t block) {
      const auto& buckets = gathers_.buckets_of(block);
      if (!buckets.empty()) start_buckets(buckets.back() + 1);
    };
    return gathers;
  }

  std::unique_ptr<MeshGroups> groups_;
  BlockGathers gathers_;
};

// Zero of gradients that are summed when all passes of a step are done.
class ZeroAfterPasses final : public Zero {
 public:
  ZeroAfterPasses(const std::string& option, Collectives& collectives, const ModelTensors& model,
                  Shards shards)
      : Zero(option, {}, collectives, model, std::move(shards)) {
    use_buckets(false);
  }
};

std::unique_ptr<Strategy> make_whole(const ZeroConfig& config, Collectives& collectives,
                                     const ModelTensors& model) {
  return make_ddp({.bucket = config.bucket, .batch_norm = config.batch_norm}, collectives, model);
}

std::unique_ptr<Strategy> make_zero(const std::string& option, const ZeroConfig& config,
                                    Collectives& collectives, const ModelTensors& model,
                                    GradientBuckets::Memory memory) {
  if (collectives.size() == 1) return make_whole(config, collectives, model);
  Shards shards(layout_of(option, config, collectives.size(), model), model, memory,
                ParameterBuckets::Keeps::kAll, {.rank = collectives.rank()});
  return std::make_unique<Zero>(option, config, collectives, model, std::move(shards));
}

void require_blocks(const ModelTensors& model) {
  if (model.blocks.empty()) {
    throw UsageError(
        "parallel.name=zero-3 gathers parameters block by block, and this model has no blocks of "
        "layers; use parallel.name=zero-2");
  }
  if (model.parameters.front().tensor.is_cuda()) {
    throw UsageError(
        "parallel.name=zero-3 runs on CPUs only so far: the memory of parameters on a GPU is not "
        "released yet; use parallel.name=zero-2");
  }
}

}  // namespace

void visit(config::Visitor& visitor, ZeroConfig& config) {
  visitor.field({.name = "bucket",
                 .help = "gradient bucket size of the reduce-scatter",
                 .check = config::wrong_bytes},
                config.bucket);
  visit_batch_norm(visitor, config.batch_norm);
}

void visit(config::Visitor& visitor, Zero3Config& config) {
  visit(visitor, config.zero);
  visitor.field(
      {.name = "reshard_after_forward",
       .help = "release the parameters of a block after its forward pass, and gather them again "
               "for its backward pass; false uses more memory and less communication"},
      config.reshard_after_forward);
  visitor.field({.name = kShardDegree,
                 .help = "processes that divide the parameters and gather them from each other; "
                         "further processes are replicas (hybrid sharding); 0: all processes",
                 .min = 0},
                config.data_parallel_shard_degree);
}

DeviceMesh zero3_mesh(const Zero3Config& config, int processes) {
  const int degree = degree_of(
      {fmt::format("parallel.{}", kShardDegree), config.data_parallel_shard_degree}, processes);
  return DeviceMesh({{kReplicaAxis, processes / degree}, {kShardAxis, degree}}, processes);
}

std::unique_ptr<Strategy> make_zero1(const ZeroConfig& config, Collectives& collectives,
                                     const ModelTensors& model) {
  return make_zero("parallel.name=zero-1", config, collectives, model,
                   GradientBuckets::Memory::kKept);
}

std::unique_ptr<Strategy> make_zero2(const ZeroConfig& config, Collectives& collectives,
                                     const ModelTensors& model) {
  return make_zero("parallel.name=zero-2", config, collectives, model,
                   GradientBuckets::Memory::kOnDemand);
}

std::unique_ptr<Strategy> make_sharded_replicas(const std::string& option, ReplicaSums sums,
                                                Collectives& replicas, const ModelTensors& model) {
  if (sums == ReplicaSums::kInBackward) {
    return make_zero(option, {}, replicas, model, GradientBuckets::Memory::kKept);
  }
  Shards shards(layout_of(option, {}, replicas.size(), model), model,
                GradientBuckets::Memory::kOnDemand, ParameterBuckets::Keeps::kAll,
                {.rank = replicas.rank()});
  if (sums == ReplicaSums::kInEachBackward) {
    return std::make_unique<Zero>(option, ZeroConfig(), replicas, model, std::move(shards));
  }
  return std::make_unique<ZeroAfterPasses>(option, replicas, model, std::move(shards));
}

std::map<std::string, std::vector<LogicalTensor::Part>> replica_shards(const ModelTensors& model,
                                                                       int replicas,
                                                                       size_t tp_rank) {
  const ShardLayout layout = layout_of("parallel.data_parallel", {}, replicas, model, {}, tp_rank);
  std::map<std::string, std::vector<LogicalTensor::Part>> parts;
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    parts[model.parameters[i].name] = layout.parts(i);
  }
  return parts;
}

std::shared_ptr<ParameterBuckets> make_parameter_buckets(const Zero3Config& config,
                                                         const Collectives& collectives,
                                                         const ModelTensors& model) {
  require_blocks(model);
  const ShardLayout layout =
      layout_of(kZero3, config.zero, collectives.size(), model, groups_of(model));
  const int shards = zero3_mesh(config, collectives.size()).size(kShardAxis);
  return std::make_shared<ParameterBuckets>(
      model.parameters, layout, ParameterBuckets::Keeps::kParts,
      ParameterBuckets::Group{.rank = collectives.rank(), .shards = shards});
}

std::unique_ptr<Strategy> make_zero3(const Zero3Config& config, Collectives& collectives,
                                     const ModelTensors& model) {
  if (collectives.size() == 1) return make_whole(config.zero, collectives, model);
  require_blocks(model);
  const std::vector<size_t> groups = groups_of(model);
  ShardLayout layout = layout_of(kZero3, config.zero, collectives.size(), model, groups);
  BlockGathers::Config gathers = gathers_of(layout, groups, model.blocks.size());
  auto mesh = std::make_unique<MeshGroups>(zero3_mesh(config, collectives.size()), collectives);
  ParameterBuckets::Group group{.rank = collectives.rank()};
  if (const int shards = mesh->mesh().size(kShardAxis); shards < collectives.size()) {
    group.shards = shards;
    group.shard = &mesh->along({kShardAxis});
    group.replicas = &mesh->along({kReplicaAxis});
  }
  Shards shards(std::move(layout), model, GradientBuckets::Memory::kOnDemand,
                ParameterBuckets::Keeps::kParts, group);
  return std::make_unique<Zero3>(config, std::move(mesh), model, std::move(shards),
                                 std::move(gathers));
}

}  // namespace gallop::parallel
