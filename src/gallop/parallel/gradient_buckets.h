#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// The number of elements that a parameter takes in a bucket: places are aligned so that vector
/// registers are loaded in one access.
int64_t aligned_elements(int64_t elements, int64_t element_bytes);

/// Contiguous storage for the gradients of all parameters, in a few tensors that can be all-reduced
/// as a whole.
class GradientBuckets {
 public:
  /// Assigns parameters to buckets in this order. A bucket has one data type, and is closed before
  /// it would exceed `most_bytes`.
  GradientBuckets(const std::vector<at::Tensor>& parameters, int64_t most_bytes);
  /// With a bucket for each list: these parameters, of one data type, in this order, each at a
  /// multiple of aligned_elements(). Parameters are counted through all lists.
  explicit GradientBuckets(const std::vector<std::vector<at::Tensor>>& lists);

  size_t size() const { return buckets_.size(); }
  const at::Tensor& bucket(size_t index) const { return buckets_[index].tensor; }
  /// Views of a bucket, one for each of its parameters, with the parameter's sizes and strides.
  std::vector<at::Tensor> places(size_t index) const;
  NamedTensors named() const;

  /// Marks all gradients as missing.
  void empty();
  /// Moves a parameter's gradient, or zeros if it has none, to its place in the bucket, and makes
  /// that view its gradient. A gradient that is there already stays.
  void move(size_t parameter);
  /// As move(); returns whether the bucket is full now.
  bool fill(size_t parameter);
  /// Makes the view of each place the gradient of its parameter.
  void give_to_parameters();

  /// Copies all places from another object for the same parameters, adds them, or sets them to
  /// zero.
  void copy(const GradientBuckets& other);
  void add(const GradientBuckets& other);
  void zero();
  /// The place of a parameter's gradient.
  const at::Tensor& place(size_t parameter) const { return slots_[parameter].place; }
  /// Replaces negative zeros by positive ones.
  void drop_signs_of_zeros();

  bool is_filled(size_t parameter) const { return slots_[parameter].is_filled; }
  bool is_full(size_t bucket) const { return buckets_[bucket].missing == 0; }

 private:
  void add_bucket(const at::Tensor* begin, const at::Tensor* end);

  struct Slot {
    at::Tensor parameter;
    at::Tensor place;  ///< With the parameter's sizes and strides.
    size_t bucket = 0;
    bool is_filled = false;
  };
  struct Bucket {
    at::Tensor tensor;
    int64_t parameters = 0, missing = 0;
  };

  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
};

}  // namespace gallop::parallel
