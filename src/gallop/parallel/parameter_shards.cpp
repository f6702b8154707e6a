#include "gallop/parallel/parameter_shards.h"

#include <algorithm>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "gallop/kernel/optimizer_step.h"
#include "gallop/kernel/update.h"
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

int64_t chunks_of(int64_t elements) {
  return (elements + kernel::kNormChunk - 1) / kernel::kNormChunk;
}

}  // namespace

ParameterShards::ParameterShards(std::string strategy, NamedTensors parameters, ShardLayout layout,
                                 const GradientBuckets& buckets, Collectives& collectives)
    : strategy_(std::move(strategy)),
      parameters_(std::move(parameters)),
      layout_(std::move(layout)),
      buckets_(buckets),
      collectives_(collectives) {
  std::vector<at::Tensor> gradients(parameters_.size());
  size_t slot = 0;
  for (const ShardLayout::Bucket& bucket : layout_.buckets()) {
    if (!bucket.is_trained) break;
    for (const size_t i : bucket.parameters) gradients[i] = buckets.place(slot++);
  }
  make_own(gradients);
  make_sums();
}

void ParameterShards::make_own(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, tensor] = parameters_[i];
    const ShardLayout::Part part = layout_.part_of(i, collectives_.rank());
    const bool is_all = part.size() == tensor.numel() && tensor.numel() > 0;
    const auto own_of = [&](const at::Tensor& whole) {
      if (is_all) return whole.detach();
      return part_of(tensor, range_of(whole, part.begin, part.end), part);
    };
    own_.push_back({name, own_of(tensor)});
    if (gradients[i].defined()) own_.back().tensor.mutable_grad() = own_of(gradients[i]);
  }
}

void ParameterShards::make_sums() {
  is_by_chunk_ = true;
  int64_t chunks = 0;
  for (size_t i = 0; i < own_.size(); ++i) {
    const at::Tensor& tensor = parameters_[i].tensor;
    const at::Tensor& gradient = own_[i].tensor.grad();
    if (!gradient.defined()) continue;
    is_by_chunk_ &= tensor.is_cpu() &&
                    (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16);
    if (gradient.numel() > 0) {
      gradients_.push_back(gradient);
      const int64_t begin = layout_.part_of(i, collectives_.rank()).begin;
      first_.push_back(chunks + begin / kernel::kNormChunk);
    }
    chunks += chunks_of(tensor.numel());
  }
  const auto options = parameters_.front().tensor.options().requires_grad(false);
  sums_ = at::zeros({is_by_chunk_ ? std::max<int64_t>(1, chunks) : 1}, options.dtype(at::kDouble));
}

at::Tensor ParameterShards::gradient_norm() const {
  const at::NoGradGuard no_grad;
  if (is_by_chunk_) {
    kernel::sums_of_squares(sums_, gradients_, first_);
  } else if (gradients_.empty()) {
    sums_.zero_();
  } else {
    sums_.copy_(
        at::stack(at::_foreach_norm(gradients_, 2, at::kDouble)).square().sum().reshape({1}));
  }
  all_reduce_async(sums_);
  wait_tensor(sums_);
  return is_by_chunk_ ? kernel::norm_of_sums(sums_) : sums_.select(0, 0).sqrt();
}

std::string ParameterShards::first_non_finite_gradient() const {
  const auto found = gather(collectives_, optim::first_non_finite_gradient(own_));
  for (const auto& [name, tensor] : parameters_) {
    if (std::find(found.begin(), found.end(), name) != found.end()) return name;
  }
  return {};
}

void ParameterShards::all_gather() const {
  const at::NoGradGuard no_grad;
  const auto& buckets = layout_.buckets();
  // Copies ranges between parameters and their places.
  const auto copy = [&](size_t bucket, size_t k, int64_t begin, int64_t end, bool to_bucket) {
    if (begin >= end) return;
    const at::Tensor of_parameter =
        range_of(parameters_[buckets[bucket].parameters[k]].tensor, begin, end);
    const at::Tensor place =
        buckets_.bucket(bucket).narrow(0, buckets[bucket].offsets[k] + begin, end - begin);
    if (to_bucket) {
      place.copy_(of_parameter);
    } else {
      of_parameter.copy_(place);
    }
  };
  const auto own = [&](size_t bucket, size_t k) {
    return layout_.part_of(buckets[bucket].parameters[k], collectives_.rank());
  };
  for (size_t i = 0; i < buckets_.size(); ++i) {
    for (size_t k = 0; k < buckets[i].parameters.size(); ++k) {
      copy(i, k, own(i, k).begin, own(i, k).end, /*to_bucket=*/true);
    }
    all_gather_async(buckets_.bucket(i), buckets[i].sizes);
  }
  for (size_t i = 0; i < buckets_.size(); ++i) {
    wait_tensor(buckets_.bucket(i));
    for (size_t k = 0; k < buckets[i].parameters.size(); ++k) {
      const int64_t elements = parameters_[buckets[i].parameters[k]].tensor.numel();
      copy(i, k, 0, own(i, k).begin, /*to_bucket=*/false);
      copy(i, k, own(i, k).end, elements, /*to_bucket=*/false);
    }
  }
}

}  // namespace gallop::parallel
