#include "gallop/parallel/parameter_shards.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "gallop/parallel/packed.h"
#include "gallop/parallel/parameter_buckets.h"
#include "gallop/parallel/sharded_optimizer.h"
#include "gallop/parallel/shared_update.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

// Elements [begin, end) in memory order.
at::Tensor range_of(const at::Tensor& dense, int64_t begin, int64_t end) {
  return dense.detach().as_strided({end - begin}, {1}, dense.storage_offset() + begin);
}

// A view of some elements in memory order, with as many dimensions: groups of an optimizer tell
// matrices from vectors by them.
at::Tensor part_of(const at::Tensor& parameter, const at::Tensor& memory,
                   const ShardLayout::Part& part) {
  const auto dims = static_cast<size_t>(std::max<int64_t>(1, parameter.dim()));
  std::vector<int64_t> sizes(dims, part.size() == 0 ? 0 : 1), strides(dims, 1);
  sizes.back() = part.size();
  return memory.as_strided(sizes, strides, memory.storage_offset());
}

}  // namespace

ParameterShards::ParameterShards(std::string option, NamedTensors parameters, ShardLayout layout,
                                 const std::vector<at::Tensor>& own, Collectives& collectives,
                                 ParameterBuckets& places)
    : option_(std::move(option)),
      parameters_(std::move(parameters)),
      layout_(std::move(layout)),
      collectives_(collectives),
      places_(places),
      norm_(parameters_) {
  // The first element of this process's part of each parameter's gradient.
  std::vector<at::Tensor> gradients(parameters_.size());
  const auto rank = static_cast<size_t>(collectives_.rank());
  for (size_t b = 0; b < own.size(); ++b) {
    const ShardLayout::Bucket& bucket = layout_.buckets()[b];
    const int64_t begin =
        std::accumulate(bucket.sizes.begin(), bucket.sizes.begin() + rank, int64_t{0});
    for (size_t k = 0; k < bucket.parameters.size(); ++k) {
      const size_t i = bucket.parameters[k];
      const ShardLayout::Part part = layout_.part_of(i, collectives_.rank());
      const int64_t first = part.size() == 0 ? 0 : bucket.offsets[k] + part.begin - begin;
      gradients[i] = own[b].narrow(0, first, part.size());
    }
  }
  make_own(gradients);
  for (size_t i = 0; i < own_.size(); ++i) {
    norm_.add(i, own_[i].tensor, layout_.part_of(i, collectives_.rank()).begin);
  }
}

void ParameterShards::make_own(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, tensor] = parameters_[i];
    const ShardLayout::Part part = layout_.part_of(i, collectives_.rank());
    const bool is_all = part.size() == tensor.numel() && tensor.numel() > 0;
    own_.push_back({name, is_all ? tensor.detach()
                                 : part_of(tensor, range_of(tensor, part.begin, part.end), part)});
    const at::Tensor& gradient = gradients[i];
    if (!gradient.defined()) continue;
    own_.back().tensor.mutable_grad() =
        is_all ? gradient.as_strided(tensor.sizes(), tensor.strides(), gradient.storage_offset())
               : part_of(tensor, gradient, part);
  }
}

at::Tensor ParameterShards::gradient_norm() const {
  const at::NoGradGuard no_grad;
  norm_.sum_here();
  all_reduce_async(norm_.sums());
  wait_tensor(norm_.sums());
  return norm_.norm();
}

std::vector<at::Tensor> ParameterShards::gather_gradients(
    const std::vector<size_t>& parameters) const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> wholes;
  if (parameters.empty()) return wholes;
  std::vector<int64_t> sizes(static_cast<size_t>(collectives_.size()));
  for (const size_t i : parameters) {
    for (const ShardLayout::Part& part : layout_.parts(i)) {
      sizes[static_cast<size_t>(part.rank)] += part.size();
    }
    const at::Tensor& parameter = parameters_[i].tensor;
    wholes.push_back(at::empty({parameter.numel()}, parameter.options().requires_grad(false)));
  }
  const at::Tensor packed = at::empty({std::accumulate(sizes.begin(), sizes.end(), int64_t{0})},
                                      wholes.front().options());
  if (packed.numel() == 0) return wholes;
  int64_t begin = 0;
  // The parts of the first process, one after the other, then those of the next.
  const auto for_each_part = [&](const auto& function) {
    begin = 0;
    for (int rank = 0; rank < collectives_.size(); ++rank) {
      for (size_t k = 0; k < parameters.size(); ++k) {
        const ShardLayout::Part part = layout_.part_of(parameters[k], rank);
        if (part.size() > 0) function(k, part, packed.narrow(0, begin, part.size()));
        begin += part.size();
      }
    }
  };
  for_each_part([&](size_t k, const ShardLayout::Part& part, const at::Tensor& place) {
    if (part.rank != collectives_.rank()) return;
    place.copy_(in_memory_order(own_[parameters[k]].tensor.grad()));
  });
  all_gather_async(packed, sizes);
  wait_tensor(packed);
  for_each_part([&](size_t k, const ShardLayout::Part& part, const at::Tensor& place) {
    wholes[k].narrow(0, part.begin, part.size()).copy_(place);
  });
  return wholes;
}

void ParameterShards::set_gradients(const std::vector<size_t>& parameters,
                                    const std::vector<at::Tensor>& wholes) const {
  const at::NoGradGuard no_grad;
  for (size_t k = 0; k < parameters.size(); ++k) {
    const ShardLayout::Part part = layout_.part_of(parameters[k], collectives_.rank());
    if (part.size() == 0) continue;
    in_memory_order(own_[parameters[k]].tensor.grad())
        .copy_(wholes[k].narrow(0, part.begin, part.size()));
  }
}

std::vector<LogicalTensor> ParameterShards::logical_parameters() const {
  const NamedTensors wholes = on_meta(parameters_);
  std::vector<LogicalTensor> all;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const bool is_divided = own_[i].tensor.grad().defined();
    all.push_back({.name = wholes[i].name,
                   .whole = wholes[i].tensor,
                   .local = is_divided ? own_[i].tensor : parameters_[i].tensor});
    if (is_divided) all.back().parts = layout_.parts(i);
  }
  return all;
}

ParameterShards::Bytes ParameterShards::gradient_bytes() const {
  Bytes bytes;
  for (size_t i = 0; i < own_.size(); ++i) {
    const at::Tensor& gradient = own_[i].tensor.grad();
    if (!gradient.defined()) continue;
    bytes.here += static_cast<int64_t>(gradient.nbytes());
    bytes.all += static_cast<int64_t>(parameters_[i].tensor.nbytes());
  }
  return bytes;
}

ParameterShards::Bytes ParameterShards::parameter_bytes() const {
  Bytes bytes = gradient_bytes();
  bytes.here = places_.keeps_all() ? bytes.all : places_.bytes_of_parts();
  return bytes;
}

std::string ParameterShards::first_of_all(const std::string& own) const {
  return first_found(parameters_, gather(collectives_, own));
}

std::string ParameterShards::first_non_finite_gradient() const {
  return first_of_all(optim::first_non_finite_gradient(own_));
}

std::string ParameterShards::first_non_finite_parameter() const {
  return first_of_all(optim::first_non_finite(own_));
}

void ParameterShards::share_update() const {
  if (places_.keeps_all()) {
    all_gather();
  } else {
    places_.share_with_replicas();
  }
}

void ParameterShards::all_gather() const {
  const SubgroupScope group(collectives_);
  const at::NoGradGuard no_grad;
  places_.share_with_replicas();
  if (places_.is_whole()) places_.gather_all();
}

}  // namespace gallop::parallel
