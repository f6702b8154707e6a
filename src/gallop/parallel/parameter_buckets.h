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
  /// Address space for the trained parameters, each at the place of its gradient in the layout, and
  /// no memory until they are written. Of the parameters only sizes, strides and types are read,
  /// which may be on the meta device. Those that were created in the buckets of an equal object
  /// stay there (place()).
  ParameterBuckets(const NamedTensors& parameters, const ShardLayout& layout, int rank);

  /// The place of a parameter, as an independent tensor with its sizes and strides; undefined if it
  /// is not trained.
  at::Tensor place(size_t parameter) const;
  /// Releases what this process does not keep of a parameter that was created at its place.
  void release_parameter(size_t parameter) const;
  /// Moves the parameters, which must be on the CPU, to their places; everything is there then. If
  /// they have been created there, a process has its parts.
  void take(const NamedTensors& parameters);

  size_t size() const { return buckets_.size(); }
  NamedTensors named() const;

  /// Starts to gather a bucket, not before `after` has been computed, if it is defined.
  void start_gather(size_t bucket, const at::Tensor& after) const;
  void wait(size_t bucket) const;
  /// Releases all parts but that of this process.
  void release(size_t bucket) const;
  PendingCollective gather_call(size_t bucket) const;

  /// Whether everything is there: after take(), and from gather_all() to release_all().
  bool is_whole() const { return is_whole_; }
  /// All buckets, one after the other.
  void gather_all();
  void release_all();

 private:
  struct Bucket {
    at::Tensor tensor;
    std::vector<int64_t> sizes;  // Of the processes, in elements.
    int64_t own_begin = 0, own_end = 0;
    std::vector<size_t> parameters;
  };
  struct Place {
    size_t bucket = 0;
    at::Tensor tensor;  // Undefined: of a parameter that is not trained.
  };

  std::vector<Bucket> buckets_;
  std::vector<Place> places_;  // Of each parameter.
  bool is_whole_ = false;
};

}  // namespace gallop::parallel
