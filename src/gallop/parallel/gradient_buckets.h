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
  enum class Memory : uint8_t {
    kKept,     ///< Buckets exist all the time. Gradients become views of them.
    kOnDemand  ///< A bucket exists from its first gradient to release(). Gradients are removed.
  };

  /// Assigns parameters to buckets in this order. A bucket has one data type, and is closed before
  /// it would exceed `most_bytes`.
  GradientBuckets(const std::vector<at::Tensor>& parameters, int64_t most_bytes);
  /// With a bucket for each list: these parameters, of one data type, in this order, each at a
  /// multiple of aligned_elements(). Parameters are counted through all lists.
  explicit GradientBuckets(const std::vector<std::vector<at::Tensor>>& lists,
                           Memory memory = Memory::kKept);

  size_t size() const { return buckets_.size(); }
  bool are_kept() const { return memory_ == Memory::kKept; }
  /// Undefined while it does not exist.
  const at::Tensor& bucket(size_t index) const { return buckets_[index].tensor; }
  int64_t elements(size_t index) const { return buckets_[index].elements; }
  /// An uninitialized tensor of a bucket's size.
  at::Tensor empty_like_bucket(size_t index) const;
  /// A tensor of a bucket's size and options, of whose contents nothing is read.
  at::Tensor shape_of(size_t index) const;
  /// Views of a bucket, one for each of its parameters, with the parameter's sizes and strides.
  std::vector<at::Tensor> places(size_t index) const;
  NamedTensors named() const;

  /// Marks all gradients as missing.
  void empty();
  /// Moves a parameter's gradient, or zeros if it has none, to its place in the bucket, and makes
  /// that view its gradient if buckets are kept. A gradient that is there already stays.
  void move(size_t parameter);
  /// As move(); returns whether the bucket is full now.
  bool fill(size_t parameter);
  /// Fills the rest of a bucket.
  void fill_bucket(size_t bucket);
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
  /// Whether a gradient of this tensor has been moved since empty().
  bool has_gradient_of(const at::Tensor& parameter) const;
  /// Frees a bucket that is not kept.
  void release(size_t bucket);
  bool is_full(size_t bucket) const { return buckets_[bucket].missing == 0; }

 private:
  void add_bucket(const at::Tensor* begin, const at::Tensor* end);

  void make(size_t bucket);

  struct Slot {
    at::Tensor parameter;
    at::Tensor place;  ///< With the parameter's sizes and strides; undefined without its bucket.
    size_t bucket = 0;
    int64_t offset = 0;
    bool is_filled = false;
    bool has_gradient = false;  ///< If it is filled: not by zeros.
  };
  struct Bucket {
    at::Tensor tensor;
    at::TensorOptions options;
    int64_t elements = 0;
    size_t first = 0;  ///< Slot.
    int64_t parameters = 0, missing = 0;
  };

  Memory memory_ = Memory::kKept;
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
};

}  // namespace gallop::parallel
