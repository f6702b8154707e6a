#include "gallop/model/exported/transitions.h"

#include <utility>
#include <vector>

#include <ATen/ops/embedding.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/model/functional/embedding.h"
#include "gallop/model/functional/tensor_parallel.h"

namespace gallop::model::exported {

namespace {

Node make_transition(const Node& near, const char* function, std::vector<NamedArgument> inputs,
                     const std::string& result) {
  return {.name = result,
          .kind = Node::Kind::kTransition,
          .function = function,
          .inputs = std::move(inputs),
          .outputs = {TensorName{result}},
          .source = near.source,
          .modules = near.modules};
}

}  // namespace

Node copy_to_region(const Node& near, const std::string& tensor, const std::string& result) {
  return make_transition(near, kCopyToRegion, {{.name = "self", .value = TensorName{tensor}}},
                         result);
}

Node scatter_to_region(const Node& near, const std::string& tensor, const Shard& shard,
                       const std::string& result) {
  return make_transition(near, kScatterToRegion,
                         {{.name = "self", .value = TensorName{tensor}},
                          {.name = "dim", .value = shard.dim},
                          {.name = "group", .value = shard.group}},
                         result);
}

Node reduce_from_region(const Node& near, const std::string& tensor, const std::string& bias,
                        const std::string& result) {
  return make_transition(
      near, kReduceFromRegion,
      {{.name = "self", .value = TensorName{tensor}},
       {.name = "bias", .value = bias.empty() ? Argument() : Argument(TensorName{bias})}},
      result);
}

Node look_up_in_region(const Node& near, const std::string& table, const std::string& indices,
                       int64_t rows, int64_t padding, const std::string& result) {
  return make_transition(near, kLookUpInRegion,
                         {{.name = "weight", .value = TensorName{table}},
                          {.name = "indices", .value = TensorName{indices}},
                          {.name = "rows", .value = rows},
                          {.name = "padding_idx", .value = padding}},
                         result);
}

namespace {

at::Tensor look_up(const at::Tensor& table, const at::Tensor& indices, int64_t rows,
                   int64_t padding, const TensorGroup& group) {
  const functional::PartRange range = functional::part_range(rows, group);
  const functional::TablePart own =
      functional::part_of_table(indices, range.begin, range.size(), rows, table.scalar_type());
  const bool has_padding = padding >= range.begin && padding < range.end;
  const at::Tensor found =
      at::embedding(table, own.indices, has_padding ? padding - range.begin : -1);
  return functional::reduce_from_tensor_parallel_region(found.mul(own.factors), group);
}

}  // namespace

void run_transition(const std::string& function, torch::jit::Stack& stack,
                    const TensorGroup& processes) {
  const at::Tensor x = stack[0].toTensor();
  at::Tensor y;
  if (function == kCopyToRegion) {
    y = functional::copy_to_tensor_parallel_region(x, processes);
  } else if (function == kScatterToRegion) {
    const int64_t dim = stack[1].toInt(), group = stack[2].toInt();
    y = x.size(dim) == group
            ? functional::scatter_parts(x, dim, processes)
            : functional::scatter_parts(x.unflatten(dim, {-1, group}), dim + 1, processes)
                  .flatten(dim, dim + 1);
  } else if (function == kReduceFromRegion) {
    y = functional::reduce_from_tensor_parallel_region(x, processes);
    // Under autocast the sum is in 16 bits.
    if (stack[1].isTensor()) y = y.add(stack[1].toTensor().to(y.scalar_type()));
  } else if (function == kLookUpInRegion) {
    y = look_up(x, stack[1].toTensor(), stack[2].toInt(), stack[3].toInt(), processes);
  } else {
    throw InternalError(fmt::format("unknown transition '{}'", function));
  }
  stack = {std::move(y)};
}

kernel::DropoutPart dropout_part(const at::Tensor& x, const Shard& shard,
                                 const TensorGroup& processes) {
  const functional::PartRange range = functional::part_range(shard.group, processes);
  return functional::dropout_part(x.unflatten(shard.dim, {-1, range.size()}), shard.dim + 1,
                                  shard.group, {range});
}

}  // namespace gallop::model::exported
