#include "gallop/parallel/parameter_buckets.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

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

// Memory that is not used before the parameters move there, except for the gaps between them.
at::Tensor empty_bucket(const NamedTensors& parameters, const ShardLayout::Bucket& of,
                        int64_t elements) {
  const auto options = parameters[of.parameters.front()].tensor.options().requires_grad(false);
  const at::Tensor bucket = at::empty({elements}, options);
  for (size_t k = 0; k < of.parameters.size(); ++k) {
    const int64_t begin = of.offsets[k] + parameters[of.parameters[k]].tensor.numel();
    const int64_t end = k + 1 < of.parameters.size() ? of.offsets[k + 1] : elements;
    bucket.slice(0, begin, end).zero_();
  }
  return bucket;
}

at::Tensor new_bucket(const NamedTensors& parameters, const ShardLayout::Bucket& of,
                      int64_t elements, ParameterBuckets::Keeps keeps) {
  if (keeps == ParameterBuckets::Keeps::kAll) return empty_bucket(parameters, of, elements);
  const at::Tensor created = created_bucket(parameters, of, elements);
  const at::ScalarType type = parameters[of.parameters.front()].tensor.scalar_type();
  return created.defined() ? created : zeros_in_pages(elements, type);
}

}  // namespace

ParameterBuckets::ParameterBuckets(const NamedTensors& parameters, const ShardLayout& layout,
                                   Keeps keeps, const Group& group)
    : places_(parameters.size()), keeps_(keeps), group_(group) {
  const at::NoGradGuard no_grad;
  for (const ShardLayout::Bucket& of : layout.buckets()) {
    if (!of.is_trained) break;
    const int64_t elements = std::accumulate(of.sizes.begin(), of.sizes.end(), int64_t{0});
    const at::Tensor tensor = new_bucket(parameters, of, elements, keeps);
    for (size_t k = 0; k < of.parameters.size(); ++k) {
      const size_t i = of.parameters[k];
      const at::Tensor& parameter = parameters[i].tensor;
      places_[i] = {
          .bucket = buckets_.size(),
          .tensor = tensor.as_strided(parameter.sizes(), parameter.strides(), of.offsets[k])};
    }
    Bucket bucket{.tensor = tensor, .regions = {}, .kept = {}, .parameters = of.parameters};
    const size_t shards = group.shards > 0 ? static_cast<size_t>(group.shards) : of.sizes.size();
    const auto own = of.sizes.begin() + static_cast<std::ptrdiff_t>(group.rank % shards);
    int64_t begin = 0;
    for (size_t first = 0; first < of.sizes.size(); first += shards) {
      const auto sizes = of.sizes.begin() + static_cast<std::ptrdiff_t>(first);
      const int64_t size =
          std::accumulate(sizes, sizes + static_cast<std::ptrdiff_t>(shards), int64_t{0});
      const int64_t kept = std::accumulate(sizes, own + static_cast<std::ptrdiff_t>(first), begin);
      bucket.kept.push_back({kept, kept + own[static_cast<std::ptrdiff_t>(first)]});
      bucket.regions.push_back({.tensor = size == elements ? tensor : tensor.narrow(0, begin, size),
                                .sizes = {sizes, sizes + static_cast<std::ptrdiff_t>(shards)}});
      begin += size;
    }
    buckets_.push_back(std::move(bucket));
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
  int64_t released = begin;
  for (const Range& kept : bucket.kept) {
    release_pages_of(bucket.tensor, released, std::clamp(kept.begin, released, end));
    released = std::clamp(kept.end, released, end);
  }
  release_pages_of(bucket.tensor, released, end);
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
      if (parameter.numel() == 0) continue;
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
  std::optional<SubgroupScope> scope;
  if (group_.shard != nullptr) scope.emplace(*group_.shard);
  for (const Region& region : buckets_[bucket].regions) {
    if (region.tensor.numel() > 0) all_gather_async(region.tensor, region.sizes, after);
  }
}

void ParameterBuckets::wait(size_t bucket) const {
  for (const Region& region : buckets_[bucket].regions) {
    if (region.tensor.numel() > 0) wait_tensor(region.tensor);
  }
}

// Each call releases the elements up to the next range.
void ParameterBuckets::release(size_t bucket) const {
  const auto& [tensor, regions, kept, parameters] = buckets_[bucket];
  int64_t begin = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    const bool is_last = i + 1 == kept.size();
    const int64_t end = is_last ? tensor.numel() : kept[i + 1].begin;
    const at::Tensor part = kept.size() == 1 ? tensor : tensor.narrow(0, begin, end - begin);
    if (end > begin) release_pages(part, kept[i].begin - begin, kept[i].end - begin);
    begin = end;
  }
}

PendingCollective ParameterBuckets::gather_call(size_t bucket) const {
  const Region& region = buckets_[bucket].regions.front();
  return {.kind = PendingCollective::Kind::kAllGather,
          .tensor = region.tensor,
          .receive = region.sizes};
}

// The parts that replicas keep as well, one after the other. Each of them sends its own.
at::Tensor ParameterBuckets::start_sharing(size_t bucket) const {
  const auto& [tensor, regions, kept, parameters] = buckets_[bucket];
  std::vector<int64_t> sizes;
  for (const Range& range : kept) sizes.push_back(range.size());
  const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (all == 0) return {};
  const at::Tensor packed = at::empty({all}, tensor.options());
  const auto own = static_cast<size_t>(group_.replicas->rank());
  const int64_t begin =
      std::accumulate(sizes.begin(), sizes.begin() + group_.replicas->rank(), int64_t{0});
  // The step compiler rejects memory that was not written before it is sent.
  if (sizes[own] == 0) packed.zero_();
  packed.narrow(0, begin, sizes[own]).copy_(tensor.narrow(0, kept[own].begin, sizes[own]));
  all_gather_async(packed, sizes);
  return packed;
}

void ParameterBuckets::finish_sharing(size_t bucket, const at::Tensor& packed) const {
  if (!packed.defined()) return;
  const auto& [tensor, regions, kept, parameters] = buckets_[bucket];
  wait_tensor(packed);
  int64_t begin = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    const int64_t size = kept[i].size();
    if (static_cast<int>(i) != group_.replicas->rank()) {
      tensor.narrow(0, kept[i].begin, size).copy_(packed.narrow(0, begin, size));
    }
    begin += size;
  }
}

void ParameterBuckets::share_with_replicas() const {
  if (!has_replicas()) return;
  const SubgroupScope scope(*group_.replicas);
  const at::NoGradGuard no_grad;
  at::Tensor before;  // One bucket is sent while the next one is packed.
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const at::Tensor packed = start_sharing(i);
    if (i > 0) finish_sharing(i - 1, before);
    before = packed;
  }
  if (!buckets_.empty()) finish_sharing(buckets_.size() - 1, before);
}

int64_t ParameterBuckets::bytes_of_parts() const {
  int64_t bytes = 0;
  for (const Bucket& bucket : buckets_) {
    const auto each = static_cast<int64_t>(bucket.tensor.element_size());
    for (const Range& kept : bucket.kept) bytes += each * kept.size();
  }
  return bytes;
}

void ParameterBuckets::gather_all() {
  for (size_t i = 0; i < buckets_.size(); ++i) start_gather(i, {});
  for (size_t i = 0; i < buckets_.size(); ++i) wait(i);
  is_whole_ = true;
}

void ParameterBuckets::release_all() {
  for (size_t i = 0; i < buckets_.size(); ++i) release(i);
  is_whole_ = false;
}

}  // namespace gallop::parallel
