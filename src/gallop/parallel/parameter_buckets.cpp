#include "gallop/parallel/parameter_buckets.h"

#include <algorithm>
#include <numeric>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/heap.h"
#include "gallop/base/text.h"
#include "gallop/tensor/page_tensor.h"

namespace gallop::parallel {

namespace {

// The bucket that the parameters have been created in; undefined if there is none.
at::Tensor created_bucket(const NamedTensors& parameters, const ShardLayout::Bucket& of,
                          int64_t elements) {
  const at::Tensor& first = parameters[of.parameters.front()].tensor;
  if (!lies_in_pages(first)) return {};
  for (size_t k = 0; k < of.parameters.size(); ++k) {
    const at::Tensor& parameter = parameters[of.parameters[k]].tensor;
    if (!parameter.is_alias_of(first) || parameter.storage_offset() != of.offsets[k]) return {};
  }
  const auto bytes = static_cast<size_t>(elements) * first.element_size();
  if (first.storage().nbytes() != bytes) return {};
  return first.detach().as_strided({elements}, {1}, 0);
}

}  // namespace

ParameterBuckets::ParameterBuckets(const NamedTensors& parameters, const ShardLayout& layout,
                                   int rank)
    : places_(parameters.size()) {
  const at::NoGradGuard no_grad;
  for (const ShardLayout::Bucket& of : layout.buckets()) {
    if (!of.is_trained) break;
    const auto end = of.sizes.begin() + rank;
    const int64_t begin = std::accumulate(of.sizes.begin(), end, int64_t{0});
    const int64_t elements = std::accumulate(end, of.sizes.end(), begin);
    const at::Tensor created = created_bucket(parameters, of, elements);
    const at::Tensor tensor =
        created.defined()
            ? created
            : zeros_in_pages(elements, parameters[of.parameters.front()].tensor.scalar_type());
    for (size_t k = 0; k < of.parameters.size(); ++k) {
      const size_t i = of.parameters[k];
      const at::Tensor& parameter = parameters[i].tensor;
      places_[i] = {
          .bucket = buckets_.size(),
          .tensor = tensor.as_strided(parameter.sizes(), parameter.strides(), of.offsets[k])};
    }
    buckets_.push_back({.tensor = tensor,
                        .sizes = of.sizes,
                        .own_begin = begin,
                        .own_end = begin + *end,
                        .parameters = of.parameters});
  }
}

at::Tensor ParameterBuckets::place(size_t parameter) const {
  const at::Tensor& place = places_[parameter].tensor;
  if (!place.defined()) return {};
  at::Tensor own = at::empty({0}, place.options());
  own.set_data(place);  // A leaf, whereas autograd knows a view's base.
  return own;
}

void ParameterBuckets::release_parameter(size_t parameter) const {
  const auto& [index, place] = places_[parameter];
  const Bucket& bucket = buckets_[index];
  const int64_t begin = place.storage_offset(), end = begin + place.numel();
  release_pages_of(bucket.tensor, begin, std::clamp(bucket.own_begin, begin, end));
  release_pages_of(bucket.tensor, std::clamp(bucket.own_end, begin, end), end);
}

void ParameterBuckets::take(const NamedTensors& parameters) {
  const at::NoGradGuard no_grad;
  bool are_here = false;
  is_whole_ = false;
  for (const Bucket& bucket : buckets_) {
    bool moves = false;
    for (const size_t i : bucket.parameters) {
      const at::Tensor& place = places_[i].tensor;
      at::Tensor parameter = parameters[i].tensor;
      if (parameter.sizes() != place.sizes() || parameter.strides() != place.strides() ||
          parameter.scalar_type() != place.scalar_type()) {
        throw InternalError(
            fmt::format("'{}' is not what its place was made for", printable(parameters[i].name)));
      }
      if (parameter.const_data_ptr() == place.const_data_ptr()) {
        are_here = true;
        continue;
      }
      place.copy_(parameter);
      parameter.set_data(place);
      moves = true;
    }
    is_whole_ |= moves;
    if (moves) return_freed_memory();  // So that no more than one bucket is there twice.
  }
  if (is_whole_ && are_here) throw InternalError("only some parameters are at their places");
}

NamedTensors ParameterBuckets::named() const {
  NamedTensors all;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    all.push_back({fmt::format("parameters.{}", i), buckets_[i].tensor});
  }
  return all;
}

void ParameterBuckets::start_gather(size_t bucket, const at::Tensor& after) const {
  all_gather_async(buckets_[bucket].tensor, buckets_[bucket].sizes, after);
}

void ParameterBuckets::wait(size_t bucket) const { wait_tensor(buckets_[bucket].tensor); }

void ParameterBuckets::release(size_t bucket) const {
  release_pages(buckets_[bucket].tensor, buckets_[bucket].own_begin, buckets_[bucket].own_end);
}

PendingCollective ParameterBuckets::gather_call(size_t bucket) const {
  return {.kind = PendingCollective::Kind::kAllGather,
          .tensor = buckets_[bucket].tensor,
          .receive = buckets_[bucket].sizes};
}

void ParameterBuckets::gather_all() {
  for (size_t i = 0; i < buckets_.size(); ++i) {
    start_gather(i, {});
    wait(i);
  }
  is_whole_ = true;
}

void ParameterBuckets::release_all() {
  for (size_t i = 0; i < buckets_.size(); ++i) release(i);
  is_whole_ = false;
}

}  // namespace gallop::parallel
