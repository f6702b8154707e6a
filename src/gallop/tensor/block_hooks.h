#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop {

/// What is called around the passes of a model's blocks of layers, where one has only parts of the
/// parameters. A model calls it in forward passes alone; backward passes are found through the
/// outputs.
class BlockHooks {
 public:
  virtual ~BlockHooks() = default;
  /// Must precede any access to the parameters of the block. `input`: one of its inputs.
  virtual void before_forward(size_t block, const at::Tensor& input) = 0;
  /// `outputs`: all of the block, without undefined ones.
  virtual void after_forward(size_t block, const std::vector<at::Tensor>& outputs) = 0;
};

}  // namespace gallop
