#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/parallel/shard_layout.h"
#include "gallop/parallel/sums.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// The trained parameters of a model in buckets, so that they are gathered in place.
class ParameterBuckets {
 public:
  /// What a process keeps between steps.
  enum class Keeps {
    kAll,
    /// Its parts. The others' are gathered before they are read, and their memory is returned
    /// afterwards: buckets keep their addresses, so that tensors that autograd has saved and
    /// compiled steps stay valid.
    kParts,
  };
  /// Who gathers parameters from whom: all processes from each other; or, with hybrid sharding, the
  /// `shards` consecutive ranks of a shard group, which together keep all parameters: the parts of
  /// the layout that belong to ranks of the same place in other groups as well, its replicas.
  struct Group {
    int rank = 0;                     ///< Of all processes.
    int shards = 0;                   ///< 0: all processes.
    Collectives* shard = nullptr;     ///< The shard group; null: all.
    Collectives* replicas = nullptr;  ///< This process and its replicas.
  };
  /// Each trained parameter at the place of its gradient in the layout. With kParts this is address
  /// space, and no memory until it is written; of the parameters only sizes, strides and types are
  /// read, which may be on the meta device, and those that were created in the buckets of an equal
  /// object stay there (place()). The groups must outlive it.
  ParameterBuckets(const NamedTensors& parameters, const ShardLayout& layout, Keeps keeps,
                   const Group& group);

  /// The place of a parameter, as an independent tensor with its sizes and strides; undefined if it
  /// is not trained.
  at::Tensor place(size_t parameter) const;
  /// Releases what this process does not keep of a parameter that was created at its place.
  void release_parameter(size_t parameter) const;
  /// Moves the parameters, with kParts from the CPU, to their places; everything is there then. If
  /// they have been created there, a process has its parts.
  void take(const NamedTensors& parameters);

  size_t size() const { return buckets_.size(); }
  NamedTensors named() const;

  /// Starts to gather a bucket, not before `after` has been computed, if it is defined.
  void start_gather(size_t bucket, const at::Tensor& after) const;
  void wait(size_t bucket) const;
  /// Releases all but what this process keeps.
  void release(size_t bucket) const;
  PendingCollective gather_call(size_t bucket) const;
  /// Whether parameters are kept by several shard groups.
  bool has_replicas() const { return group_.replicas != nullptr; }
  /// Gets from its replicas the parts that they have updated.
  void share_with_replicas() const;
  /// Bytes of this process's parts.
  int64_t bytes_of_parts() const;

  bool keeps_all() const { return keeps_ == Keeps::kAll; }
  /// Whether everything is there: after take(), and from gather_all() to release_all().
  bool is_whole() const { return is_whole_; }
  void gather_all();
  void release_all();

 private:
  struct Range {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
  };
  // Consecutive elements of a bucket, the parts of a shard group.
  struct Region {
    at::Tensor tensor;
    std::vector<int64_t> sizes;  // Sizes in its processes.
  };
  struct Bucket {
    at::Tensor tensor;
    std::vector<Region> regions;
    std::vector<Range> kept;  // One in each region.
    std::vector<size_t> parameters;
  };
  at::Tensor start_sharing(size_t bucket) const;
  void finish_sharing(size_t bucket, const at::Tensor& packed) const;
  struct Place {
    size_t bucket = 0;
    at::Tensor tensor;  // Undefined: of a parameter that is not trained.
  };

  std::vector<Bucket> buckets_;
  std::vector<Place> places_;  // Place of each parameter.
  Keeps keeps_;
  Group group_;
  bool is_whole_ = false;
};

}  // namespace gallop::parallel
