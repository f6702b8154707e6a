#include "gallop/parallel/parameter_buckets.h"

#include <numeric>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "gallop/base/heap.h"
#include "gallop/tensor/page_tensor.h"

namespace gallop::parallel {

ParameterBuckets::ParameterBuckets(const NamedTensors& parameters, const ShardLayout& layout,
                                   int rank) {
  const at::NoGradGuard no_grad;
  for (const ShardLayout::Bucket& of : layout.buckets()) {
    if (!of.is_trained) break;
    const auto end = of.sizes.begin() + rank;
    const int64_t begin = std::accumulate(of.sizes.begin(), end, int64_t{0});
    const int64_t elements = std::accumulate(end, of.sizes.end(), begin);
    const at::Tensor tensor =
        zeros_in_pages(elements, parameters[of.parameters.front()].tensor.scalar_type());
    for (size_t k = 0; k < of.parameters.size(); ++k) {
      at::Tensor parameter = parameters[of.parameters[k]].tensor;
      const at::Tensor place =
          tensor.as_strided(parameter.sizes(), parameter.strides(), of.offsets[k]);
      place.copy_(parameter);
      parameter.set_data(place);
    }
    return_freed_memory();  // So that no more than one bucket is there twice.
    buckets_.push_back(
        {.tensor = tensor, .sizes = of.sizes, .own_begin = begin, .own_end = begin + *end});
  }
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
