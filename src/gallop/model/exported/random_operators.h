#pragma once

#include <optional>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>

#include "gallop/model/exported/schema.h"
#include "gallop/tensor/tensor_group.h"

namespace gallop::model::exported {

/// What of a random result a process draws.
struct DrawnPart {
  const TensorGroup* group = nullptr;
  std::optional<Shard> shard{};  ///< Nothing: all of it.
};

/// An operator that draws random numbers: dropout of elements, channels, samples and attention
/// weights.
struct RandomOperator {
  std::string_view function, overload;
  /// The result, for arguments of the schema. Only dropout() and attention draw parts.
  at::Tensor (*run)(const torch::jit::Stack& stack, const DrawnPart& part);
  bool is_in_place = false;
  bool is_fused_on_gpu = false;  // LibTorch's kernel for GPUs is kept.
};

/// Returns null for an operator that draws nothing or that LibTorch runs on such a device.
const RandomOperator* find_random_operator(const Node& node, c10::Device device);

/// Whether the node, or one of its subgraphs, draws random numbers in the mode that its flags have.
bool draws(const Node& node);

/// Runs the operator with the numbers of functional::dropout(), which depend on the seed, the step
/// and the slice of the batch, so that neither the number of processes nor a block that is
/// recomputed changes them. Replaces the arguments on the stack with the result. Returns false, and
/// changes nothing, for arguments with which nothing is drawn (attention without dropout).
bool run_with_own_numbers(const RandomOperator& random, torch::jit::Stack& stack,
                          const DrawnPart& part = {});

}  // namespace gallop::model::exported
