#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gallop/model/model.h"
#include "gallop/tensor/block_hooks.h"

namespace gallop::train {

/// During its lifetime, keeps copies of the outputs of a model's blocks of layers in forward
/// passes. Blocks with several outputs are left out.
class BlockOutputs final : private BlockHooks {
 public:
  /// Replaces the model's block hooks. `model` must outlive it.
  explicit BlockOutputs(model::Model& model);
  ~BlockOutputs() override { model_.set_block_hooks(nullptr); }
  BlockOutputs(const BlockOutputs&) = delete;
  BlockOutputs& operator=(const BlockOutputs&) = delete;

  /// Returns and clears the copies since the last call that have `rows` rows, in the order in which
  /// they were computed, with the blocks' names: "layer1.0".
  NamedTensors take(int64_t rows);

 private:
  void before_forward(size_t /*block*/, const at::Tensor& /*input*/) override {}
  void after_forward(size_t block, const std::vector<at::Tensor>& outputs) override;

  model::Model& model_;
  std::vector<std::string> names_;  // By block.
  NamedTensors kept_;
};

}  // namespace gallop::train
