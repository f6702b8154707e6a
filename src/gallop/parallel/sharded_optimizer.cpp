#include "gallop/parallel/sharded_optimizer.h"

#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ops/empty_strided.h>
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

class ShardedOptimizer final : public optim::Optimizer {
 public:
  ShardedOptimizer(const ParameterShards& shards, std::unique_ptr<optim::Optimizer> inner,
                   std::unique_ptr<optim::Optimizer> whole)
      : shards_(shards), inner_(std::move(inner)), whole_(std::move(whole)) {
    const NamedTensors& parameters = shards.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) indices_.emplace(parameters[i].name, i);
  }

  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale, const at::Tensor& found_inf,
                  const optim::ScheduledOptions& scheduled) override {
    inner_->step(lr, grad_scale, found_inf, scheduled);
    shards_.share_update();
    return {};
  }

  bool can_schedule(optim::ScheduledOption option) const override {
    return inner_->can_schedule(option);
  }
  NamedTensors state() const override { return inner_->state(); }
  double base_lr() const override { return inner_->base_lr(); }
  optim::Averaging averaging() const override { return inner_->averaging(); }
  std::vector<optim::UpdateUnit> update_units() const override { return whole_->update_units(); }

  void use_averaged_weights(bool averaged) override {
    const std::vector<std::string> before = names_of(whole_->state());
    inner_->use_averaged_weights(averaged);
    whole_->use_averaged_weights(averaged);
    // State that is kept in place of weights has another name. If this process ends by an error,
    // the others may not be there.
    if (names_of(whole_->state()) == before || std::uncaught_exceptions() > 0) return;
    const CollectivesScope scope(shards_.collectives());
    shards_.all_gather();
  }

  std::vector<LogicalTensor> logical_state() const override {
    std::map<std::string, at::Tensor> local;
    for (const auto& [name, tensor] : inner_->state()) local.emplace(name, tensor);
    std::vector<LogicalTensor> all;
    for (const auto& [name, whole] : whole_->state()) {
      auto found = local.find(name);
      if (found == local.end()) found = local.find(name_in_parts(name));
      // Of a parameter of which this process has nothing, an optimizer may keep nothing.
      const at::Tensor own = found != local.end() ? found->second : at::Tensor();
      all.push_back({.name = name, .whole = whole, .local = own});
      divide(all.back());
    }
    return all;
  }

 private:
  void divide(LogicalTensor& tensor) const {
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
  std::unique_ptr<optim::Optimizer> inner_, whole_;  // Of the shards; of the model, on meta.
  std::map<std::string, size_t> indices_;            // Of parameters.
};

}  // namespace

NamedTensors on_meta(const NamedTensors& tensors) {
  NamedTensors all;
  for (const auto& [name, tensor] : tensors) {
    all.push_back(
        {name, at::empty_strided(tensor.sizes(), tensor.strides(),
                                 tensor.options().device(at::kMeta).requires_grad(false))});
  }
  return all;
}

std::unique_ptr<optim::Optimizer> make_sharded_optimizer(const ParameterShards& shards,
                                                         const NamedTensors& buffers,
                                                         const MakeOptimizer& make) {
  auto inner = make(shards.tensors(), buffers);
  auto whole = make(on_meta(shards.parameters()), on_meta(buffers));
  return std::make_unique<ShardedOptimizer>(shards, std::move(inner), std::move(whole));
}

}  // namespace gallop::parallel
