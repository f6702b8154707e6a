#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include "gallop/kernel/dropout.h"
#include "gallop/model/exported/schema.h"
#include "gallop/tensor/tensor_group.h"

// Nodes between what all processes compute alike and tensor-parallel regions, in which each has a
// part of the heads or channels; after Megatron-LM's mappings.
namespace gallop::model::exported {

/// Copies; the gradient is summed over the processes.
inline constexpr const char* kCopyToRegion = "copy_to_region";
/// This process's part of a dimension; the gradient is gathered.
inline constexpr const char* kScatterToRegion = "scatter_to_region";
/// The sum over the processes, to which the bias is added, if there is one.
inline constexpr const char* kReduceFromRegion = "reduce_from_region";

/// embedding() of a table of which each process has some rows: its own, or else 0, summed over the
/// processes.
inline constexpr const char* kLookUpInRegion = "look_up_in_region";

/// Such a node: `result` from `tensor`, in the module and source line of the node that reads or
/// makes it.
Node copy_to_region(const Node& near, const std::string& tensor, const std::string& result);
Node scatter_to_region(const Node& near, const std::string& tensor, const Shard& shard,
                       const std::string& result);
Node reduce_from_region(const Node& near, const std::string& tensor, const std::string& bias,
                        const std::string& result);
/// `rows`: those of the whole table; `padding` has no gradient, and is negative if there is none.
Node look_up_in_region(const Node& near, const std::string& table, const std::string& indices,
                       int64_t rows, int64_t padding, const std::string& result);

/// Runs one: replaces the arguments on the stack with the result.
void run_transition(const std::string& function, torch::jit::Stack& stack,
                    const TensorGroup& processes);

/// Where the elements of a part `x` of a result lie in the whole one.
kernel::DropoutPart dropout_part(const at::Tensor& x, const Shard& shard,
                                 const TensorGroup& processes);

}  // namespace gallop::model::exported
