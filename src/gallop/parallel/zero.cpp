#include "gallop/parallel/zero.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"
#include "gallop/parallel/data_parallel.h"
#include "gallop/parallel/parameter_shards.h"
#include "gallop/parallel/rank_order_sums.h"

namespace gallop::parallel {

namespace {

ShardLayout layout_of(const std::string& name, const ZeroConfig& config,
                      const Collectives& collectives, const ModelTensors& model) {
  if (model.update_units.size() != model.parameters.size()) {
    throw UsageError(fmt::format(
        "parallel.name={} divides the update among processes, which this optimizer does not "
        "support: it does not tell which parameters it updates independently of each other "
        "(Optimizer::update_units()); take parallel.name=ddp, or another optimizer",
        name));
  }
  std::vector<ParameterShape> shapes;
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    const auto& [name, tensor] = model.parameters[i];
    optim::UpdateUnit unit = model.update_units[i];
    // How an element is rounded depends on its position in the tensor that the optimizer has.
    unit.is_whole = unit.is_whole || tensor.scalar_type() == at::kBFloat16;
    shapes.push_back({.name = name,
                      .elements = tensor.numel(),
                      .type = tensor.scalar_type(),
                      .is_trained = tensor.requires_grad(),
                      .unit = unit});
  }
  return ShardLayout(shapes, in_gradient_order(model), *parse_bytes(config.bucket),
                     collectives.size());
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

class Zero final : public DataParallel {
 public:
  Zero(const std::string& name, const ZeroConfig& config, Collectives& collectives,
       const ModelTensors& model, ShardLayout layout,
       const std::vector<std::vector<at::Tensor>>& lists, GradientBuckets buckets,
       const std::vector<at::Tensor>& own)
      : DataParallel(collectives, model, config.batch_norm == "synchronized", in_one(lists),
                     std::move(buckets),
                     [&](GradientBuckets& kept) {
                       return make_rank_order_sums(kept, sizes_of(layout), own,
                                                   /*gathers=*/false);
                     }),
        shards_(name, model.parameters, std::move(layout), this->buckets(), own, collectives) {}

  const ParameterShards* shards() const override { return &shards_; }
  NamedTensors state() const override {
    NamedTensors all = DataParallel::state();
    for (const auto& one : shards_.state()) all.push_back(one);
    return all;
  }

 private:
  ParameterShards shards_;
};

std::unique_ptr<Strategy> make_zero(const std::string& name, const ZeroConfig& config,
                                    Collectives& collectives, const ModelTensors& model) {
  if (collectives.size() == 1) {
    return make_ddp({.bucket = config.bucket, .batch_norm = config.batch_norm}, collectives, model);
  }
  ShardLayout layout = layout_of(name, config, collectives, model);
  const auto lists = lists_of(layout, model.parameters);
  GradientBuckets buckets(lists, divides_gradients(name) ? GradientBuckets::Memory::kOnDemand
                                                         : GradientBuckets::Memory::kKept);
  const auto own = own_parts(buckets, sizes_of(layout), collectives.rank());
  return std::make_unique<Zero>(name, config, collectives, model, std::move(layout), lists,
                                std::move(buckets), own);
}

}  // namespace

void visit(config::Visitor& visitor, ZeroConfig& config) {
  visitor.field({.name = "bucket",
                 .help = "gradient bucket size of the reduce-scatter",
                 .check = config::wrong_bytes},
                config.bucket);
  visit_batch_norm(visitor, config.batch_norm);
}

std::unique_ptr<Strategy> make_zero1(const ZeroConfig& config, Collectives& collectives,
                                     const ModelTensors& model) {
  return make_zero("zero-1", config, collectives, model);
}

std::unique_ptr<Strategy> make_zero2(const ZeroConfig& config, Collectives& collectives,
                                     const ModelTensors& model) {
  return make_zero("zero-2", config, collectives, model);
}

}  // namespace gallop::parallel
