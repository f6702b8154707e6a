#include "gallop/parallel/sharded_optimizer.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/kernel/state_map.h"
#include "gallop/parallel/shared_update.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

// Blocks of 8-bit states lie in the order of memory, which for parts of parameters is the usual
// one.
std::string name_in_parts(const std::string& name) {
  constexpr std::string_view kScales = "scales_channels_last.";
  const size_t at = name.find(kScales);
  if (at == std::string::npos) return name;
  return name.substr(0, at) + "scales." + name.substr(at + kScales.size());
}

class ShardedOptimizer final : public DividedOptimizer {
 public:
  ShardedOptimizer(const ParameterShards& shards, std::unique_ptr<optim::Optimizer> inner,
                   std::unique_ptr<optim::Optimizer> whole)
      : DividedOptimizer(std::move(inner), std::move(whole)), shards_(shards) {
    const NamedTensors& parameters = shards.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) indices_.emplace(parameters[i].name, i);
  }

 protected:
  void updated() override { shards_.share_update(); }
  void exchanged(bool /*averaged*/, bool are_others) override {
    if (!are_others) return;
    const CollectivesScope scope(shards_.collectives());
    shards_.all_gather();
  }
  std::string name_here(const std::string& name) const override { return name_in_parts(name); }
  void divide(LogicalTensor& tensor) const override {
    const size_t* const parameter = find_for_state(indices_, tensor.name);
    if (parameter != nullptr) {
      const auto& parts = shards_.layout().parts(*parameter);
      const int64_t elements = shards_.parameters()[*parameter].tensor.numel();
      const int64_t all = tensor.whole.numel();
      const int64_t blocks = (elements + kernel::kStateBlock - 1) / kernel::kStateBlock;
      const bool is_of_blocks =
          all != elements && tensor.whole.dim() == 2 && tensor.whole.size(1) == blocks;
      if (all == elements) {
        tensor.parts = parts;
      } else if (parts.size() == 1) {  // Of one process.
        tensor.parts = {{parts.front().rank, 0, all}};
      } else if (is_of_blocks) {
        tensor.rows = tensor.whole.size(0);
        for (const auto& [rank, begin, end] : parts) {
          tensor.parts.push_back({rank, begin / kernel::kStateBlock,
                                  (end + kernel::kStateBlock - 1) / kernel::kStateBlock});
        }
      }
    }
    check(tensor);
  }

 private:
  void check(const LogicalTensor& tensor) const {
    int64_t own = tensor.is_replicated() ? tensor.whole.numel() : 0;
    for (const LogicalTensor::Part& part : tensor.parts) {
      if (part.rank == shards_.collectives().rank()) own = part.size() * tensor.rows;
    }
    const int64_t there = tensor.local.defined() ? tensor.local.numel() : 0;
    if (there == own) return;
    throw InternalError(fmt::format("sharded optimizer: state '{}' has {} elements here, not {}",
                                    tensor.name, there, own));
  }

  const ParameterShards& shards_;
  std::map<std::string, size_t> indices_;  // Of parameters.
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
