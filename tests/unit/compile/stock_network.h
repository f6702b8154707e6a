#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::compile {

/// A network of LibTorch's operators, as its users write them, and batches to train it with.
struct StockNetwork {
  using Tensors = std::vector<at::Tensor>;

  /// The loss and what else the step gives out.
  std::function<Tensors(const StockNetwork& self, const Tensors& batch)> forward;
  Tensors parameters;
  Tensors buffers{};
  std::vector<Tensors> batches{};
  bool bf16 = false;             ///< Under autocast.
  bool keeps_gradients = false;  ///< Gives copies of the gradients out.

  const at::Tensor& weight(size_t i) const { return parameters[i]; }
};

/// A tensor of random numbers that are the same at each call with the same sizes and seed.
at::Tensor random(at::IntArrayRef sizes, uint64_t seed, double scale = 1);

/// Trains the network as it is, compiled, and in fp64, from the same weights at each step. Expects
/// that the compiled step calls each operator of `wanted` as often as it says, none of those in
/// `replaced`, and that no result, gradient or weight has a larger error than without compiling.
struct Replacement {
  std::vector<std::pair<std::string, int>> wanted;
  std::vector<std::string> replaced;
  /// Generated loops would take what the patterns leave.
  std::vector<std::string> passes_off = {"fuse"};
};
void expect_replaced(const StockNetwork& network, const Replacement& replacement);

/// Expects that the compiled step has none of the operators whose names contain one of
/// `unwanted`, and the bits of the network as it is. Without the pass `linear-layers`, which would
/// replace the layers of most networks.
void expect_left_alone(const StockNetwork& network, const std::vector<std::string>& unwanted);

}  // namespace gallop::compile
