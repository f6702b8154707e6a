#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/parallel/shard_layout.h"
#include "gallop/parallel/sums.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// The trained parameters of a model in buckets, of which a process keeps its part. The others' are
/// gathered before they are read, and their memory is returned afterwards: buckets keep their
/// addresses, so that tensors that autograd has saved and compiled steps stay valid.
class ParameterBuckets {
 public:
  /// Moves the parameters, which must be on the CPU, to the places of their gradients in the
  /// layout.
  ParameterBuckets(const NamedTensors& parameters, const ShardLayout& layout, int rank);

  size_t size() const { return buckets_.size(); }
  NamedTensors named() const;

  /// Starts to gather a bucket, not before `after` has been computed, if it is defined.
  void start_gather(size_t bucket, const at::Tensor& after) const;
  void wait(size_t bucket) const;
  /// Releases all parts but that of this process.
  void release(size_t bucket) const;
  PendingCollective gather_call(size_t bucket) const;

  /// Whether everything is there: initially, and from gather_all() to release_all().
  bool is_whole() const { return is_whole_; }
  /// All buckets, one after the other.
  void gather_all();
  void release_all();

 private:
  struct Bucket {
    at::Tensor tensor;
    std::vector<int64_t> sizes;  // Of the processes, in elements.
    int64_t own_begin = 0, own_end = 0;
  };

  std::vector<Bucket> buckets_;
  bool is_whole_ = true;
};

}  // namespace gallop::parallel
