#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// A place for each parameter's gradient, in a few tensors that can be summed at once.
class GradientBuckets {
 public:
  /// Parameters go into buckets in this order. A bucket has one format, and is closed before it
  /// would have more than so many bytes.
  GradientBuckets(const std::vector<at::Tensor>& parameters, int64_t most_bytes);

  size_t size() const { return buckets_.size(); }
  const at::Tensor& bucket(size_t index) const { return buckets_[index].tensor; }
  /// Views of a bucket, one for each of its parameters, with that one's sizes and strides.
  std::vector<at::Tensor> places(size_t index) const;
  NamedTensors named() const;

  /// Nothing is in its place.
  void empty();
  /// Moves a parameter's gradient to its place, or zeros where there is none, and lets the
  /// parameter have that as its gradient. One that is there already stays.
  void move(size_t parameter);
  /// The same, and returns whether its bucket is full now.
  bool fill(size_t parameter);
  /// Lets each parameter have what is in its place as its gradient.
  void give_to_parameters();

  /// What is in all places becomes what is in those of others of the same parameters, or the sum
  /// of both, or zero.
  void copy(const GradientBuckets& other);
  void add(const GradientBuckets& other);
  void zero();
  /// Turns zeros below zero into zeros above.
  void drop_signs_of_zeros();

  bool is_filled(size_t parameter) const { return slots_[parameter].is_filled; }
  bool is_full(size_t bucket) const { return buckets_[bucket].missing == 0; }

 private:
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
