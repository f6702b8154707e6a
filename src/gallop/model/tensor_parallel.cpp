#include "gallop/model/tensor_parallel.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::model {

void TensorParallel::shard(const at::Tensor& parameter, int64_t dim, int64_t groups) {
  const at::NoGradGuard no_grad;
  LogicalTensor logical{
      .name = {},
      .whole = at::empty_strided(parameter.sizes(), parameter.strides(),
                                 parameter.options().device(at::kMeta).requires_grad(false)),
      .local = parameter,
      .rows = groups};
  for (int64_t i = 0; i < dim; ++i) logical.rows *= parameter.size(i);
  const int64_t size = parameter.size(dim) / groups;
  const int64_t inner = parameter.numel() / (logical.rows * size);
  const auto bounds = functional::part_bounds(size, group_.size());
  for (int rank = 0; rank < group_.size(); ++rank) {
    const auto i = static_cast<size_t>(rank);
    logical.parts.push_back({rank, bounds[i] * inner, bounds[i + 1] * inner});
  }
  const functional::PartRange own = part_of(size);
  const at::Tensor part = parameter.detach()
                              .contiguous()
                              .unflatten(dim, {groups, size})
                              .narrow(dim + 1, own.begin, own.size());
  parameter.set_data(part.flatten(dim, dim + 1).clone(at::MemoryFormat::Contiguous));
  divided_.emplace(parameter.unsafeGetTensorImpl(), std::move(logical));
}

void TensorParallel::note_outside(const at::Tensor& parameter) {
  if (parameter.defined() && group_.sequence_parallel()) {
    outside_.push_back(parameter.unsafeGetTensorImpl());
  }
}

void TensorParallel::require_divisible(int64_t size, const std::string& what,
                                       const std::string& option) const {
  model::require_divisible("tensor", group_.size(), size, what, option);
}

ParallelizedModel TensorParallel::result(const NamedTensors& tensors) const {
  ParallelizedModel result;
  for (const auto& [name, tensor] : tensors) {
    const auto found = divided_.find(tensor.unsafeGetTensorImpl());
    if (found != divided_.end()) {
      result.divided.push_back(found->second);
      result.divided.back().name = name;
    } else if (std::ranges::count(outside_, tensor.unsafeGetTensorImpl()) > 0) {
      result.partial_gradients.push_back(name);
    }
  }
  return result;
}

functional::PartRange TensorParallel::part_of(int64_t size) const {
  return functional::part_range(size, group_);
}

at::Tensor TensorParallel::enter(const at::Tensor& x) const {
  if (!group_.sequence_parallel()) return functional::copy_to_tensor_parallel_region(x, group_);
  return functional::gather_parts(x, 1, tokens_, /*sums_gradient=*/true, group_);
}

at::Tensor TensorParallel::leave(const at::Tensor& partial) const {
  if (!group_.sequence_parallel()) {
    return functional::reduce_from_tensor_parallel_region(partial, group_);
  }
  return functional::reduce_scatter(partial, 1, group_);
}

at::Tensor TensorParallel::scatter_tokens(const at::Tensor& x) const {
  return group_.sequence_parallel() ? functional::scatter_parts(x, 1, group_) : x;
}

at::Tensor TensorParallel::gather_tokens(const at::Tensor& x) const {
  if (!group_.sequence_parallel()) return x;
  return functional::gather_parts(x, 1, tokens_, /*sums_gradient=*/false, group_);
}

at::Tensor TensorParallel::own_tokens(const at::Tensor& x, int64_t dim) const {
  if (!group_.sequence_parallel()) return x;
  const functional::PartRange own = part_of(tokens_);
  return x.narrow(dim, own.begin, own.size());
}

kernel::DropoutPart TensorParallel::part(const at::Tensor& x, int64_t dim, int64_t size) const {
  return functional::dropout_part(x, dim, size, {part_of(size)});
}

kernel::DropoutPart TensorParallel::part_outside(const at::Tensor& x) const {
  return group_.sequence_parallel() ? part(x, 1, tokens_) : kernel::DropoutPart();
}

void require_divisible(const std::string& strategy, int processes, int64_t size,
                       const std::string& what, const std::string& option,
                       const std::string& alternative) {
  const int64_t parts = processes;
  if (size % parts == 0) return;
  std::vector<std::string> counts, sizes;
  for (int64_t n = parts; n > 1 && counts.empty(); --n) {
    if (size % n == 0) counts.push_back(std::to_string(n));
  }
  for (int64_t n = parts; n <= size && counts.size() < 2; ++n) {
    if (size % n == 0) counts.push_back(std::to_string(n));
  }
  if (size > parts) sizes.push_back(std::to_string(size / parts * parts));
  sizes.push_back(std::to_string((size / parts + 1) * parts));
  throw UsageError(fmt::format(
      "parallel.name={}: the {} {} of the model cannot be divided evenly among {} processes; "
      "{}choose {} so that there are {}{}",
      strategy, size, what, parts,
      counts.empty()
          ? ""
          : fmt::format("divide them among {} processes (parallel.{}_parallel_degree), or ",
                        join_names(counts), strategy),
      option, join_names(sizes), alternative.empty() ? "" : ", or " + alternative));
}

}  // namespace gallop::model
