#include "gallop/parallel/sharded_optimizer.h"

#include <map>
#include <string>
#include <utility>

#include "gallop/parallel/shared_update.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

class ShardedOptimizer final : public DividedOptimizer {
 public:
  ShardedOptimizer(const ParameterShards& shards, std::unique_ptr<optim::Optimizer> inner,
                   std::unique_ptr<optim::Optimizer> whole)
      : DividedOptimizer(std::move(inner), std::move(whole)), shards_(shards) {
    const NamedTensors wholes = on_meta(shards.parameters());
    for (size_t i = 0; i < wholes.size(); ++i) {
      const auto& [name, tensor] = wholes[i];
      divisions_.emplace(
          name, LogicalTensor{
                    .name = name, .whole = tensor, .local = {}, .parts = shards.layout().parts(i)});
    }
  }

 protected:
  void updated() override { shards_.share_update(); }
  void exchanged(bool /*averaged*/, bool are_others) override {
    if (!are_others) return;
    const CollectivesScope scope(shards_.collectives());
    shards_.all_gather();
  }
  void divide(LogicalTensor& tensor) const override {
    const LogicalTensor* const parameter = find_for_state(divisions_, tensor.name);
    if (parameter != nullptr) divide_as(tensor, *parameter);
    require_own_part(tensor, shards_.collectives().rank());
  }

 private:
  const ParameterShards& shards_;
  std::map<std::string, LogicalTensor> divisions_;  // By the names of parameters.
};

}  // namespace

std::unique_ptr<optim::Optimizer> make_sharded_optimizer(const ParameterShards& shards,
                                                         const NamedTensors& buffers,
                                                         const MakeOptimizer& make) {
  auto inner = make(shards.tensors(), buffers);
  auto whole = make(on_meta(shards.parameters()), on_meta(buffers));
  return std::make_unique<ShardedOptimizer>(shards, std::move(inner), std::move(whole));
}

}  // namespace gallop::parallel
