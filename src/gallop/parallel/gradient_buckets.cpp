#include "gallop/parallel/gradient_buckets.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

namespace gallop::parallel {

namespace {

int64_t padded(const at::Tensor& parameter) {
  const auto element = static_cast<int64_t>(parameter.element_size());
  return aligned_elements(parameter.numel(), element) * element;
}

bool fits(const at::Tensor& parameter, const at::Tensor& first, int64_t bytes, int64_t most_bytes) {
  return parameter.scalar_type() == first.scalar_type() && parameter.device() == first.device() &&
         bytes + padded(parameter) <= most_bytes;
}

}  // namespace

int64_t aligned_elements(int64_t elements, int64_t element_bytes) {
  constexpr int64_t kAlignedBytes = 64;
  const int64_t bytes = elements * element_bytes;
  return (bytes + kAlignedBytes - 1) / kAlignedBytes * kAlignedBytes / element_bytes;
}

GradientBuckets::GradientBuckets(const std::vector<at::Tensor>& parameters, int64_t most_bytes) {
  for (size_t begin = 0, end = 0; begin < parameters.size(); begin = end) {
    const at::Tensor& first = parameters[begin];
    int64_t bytes = padded(first);
    for (end = begin + 1; end < parameters.size(); ++end) {
      if (!fits(parameters[end], first, bytes, most_bytes)) break;
      bytes += padded(parameters[end]);
    }
    add_bucket(parameters.data() + begin, parameters.data() + end);
  }
}

GradientBuckets::GradientBuckets(const std::vector<std::vector<at::Tensor>>& lists, Memory memory)
    : memory_(memory) {
  for (const auto& list : lists) add_bucket(list.data(), list.data() + list.size());
}

void GradientBuckets::add_bucket(const at::Tensor* begin, const at::Tensor* end) {
  int64_t elements = 0;
  const auto element = static_cast<int64_t>(begin->element_size());
  for (const at::Tensor* one = begin; one != end; ++one) elements += padded(*one) / element;
  const auto count = static_cast<int64_t>(end - begin);
  buckets_.push_back({.options = begin->options().requires_grad(false),
                      .elements = elements,
                      .first = slots_.size(),
                      .parameters = count,
                      .missing = count});
  int64_t offset = 0;
  for (const at::Tensor* one = begin; one != end; ++one) {
    slots_.push_back({.parameter = *one, .bucket = buckets_.size() - 1, .offset = offset});
    offset += padded(*one) / element;
  }
  if (are_kept()) make(buckets_.size() - 1);
}

void GradientBuckets::make(size_t bucket) {
  Bucket& made = buckets_[bucket];
  // What lies between places is sent, but never read.
  made.tensor = are_kept() ? at::zeros({made.elements}, made.options) : empty_like_bucket(bucket);
  for (size_t i = made.first; i < made.first + static_cast<size_t>(made.parameters); ++i) {
    const at::Tensor& parameter = slots_[i].parameter;
    slots_[i].place =
        made.tensor.as_strided(parameter.sizes(), parameter.strides(), slots_[i].offset);
  }
}

at::Tensor GradientBuckets::empty_like_bucket(size_t index) const {
  return at::empty({buckets_[index].elements}, buckets_[index].options);
}

at::Tensor GradientBuckets::shape_of(size_t index) const {
  return are_kept() ? buckets_[index].tensor
                    : at::zeros({1}, buckets_[index].options).expand({buckets_[index].elements});
}

std::vector<at::Tensor> GradientBuckets::places(size_t index) const {
  std::vector<at::Tensor> all;
  for (const Slot& slot : slots_) {
    if (slot.bucket == index) all.push_back(slot.place);
  }
  return all;
}

NamedTensors GradientBuckets::named() const {
  NamedTensors all;
  for (size_t i = 0; are_kept() && i < buckets_.size(); ++i) {
    all.push_back({fmt::format("gradients.{}", i), buckets_[i].tensor});
  }
  return all;
}

void GradientBuckets::empty() {
  for (Slot& slot : slots_) slot.is_filled = false;
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
}

void GradientBuckets::move(size_t parameter) {
  const Slot& slot = slots_[parameter];
  if (!slot.place.defined()) make(slot.bucket);
  at::Tensor& gradient = slot.parameter.mutable_grad();
  if (gradient.is_same(slot.place)) return;
  if (gradient.defined()) {
    slot.place.copy_(gradient);
  } else {
    slot.place.zero_();
  }
  gradient = are_kept() ? slot.place : at::Tensor();
}

bool GradientBuckets::has_gradient_of(const at::Tensor& parameter) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.is_filled && slot.has_gradient && slot.parameter.is_same(parameter);
  });
}

void GradientBuckets::release(size_t bucket) {
  if (are_kept()) return;
  Bucket& made = buckets_[bucket];
  made.tensor.reset();
  for (size_t i = made.first; i < made.first + static_cast<size_t>(made.parameters); ++i) {
    slots_[i].place.reset();
  }
}

bool GradientBuckets::fill(size_t parameter) {
  Slot& slot = slots_[parameter];
  slot.has_gradient = slot.parameter.grad().defined();
  move(parameter);
  slot.is_filled = true;
  return --buckets_[slot.bucket].missing == 0;
}

void GradientBuckets::fill_bucket(size_t bucket) {
  const size_t first = buckets_[bucket].first;
  for (size_t i = first; i < first + static_cast<size_t>(buckets_[bucket].parameters); ++i) {
    if (!is_filled(i)) fill(i);
  }
}

void GradientBuckets::give_to_parameters() {
  for (Slot& slot : slots_) slot.parameter.mutable_grad() = slot.place;
}

void GradientBuckets::copy(const GradientBuckets& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i].tensor.copy_(other.bucket(i));
}

void GradientBuckets::add(const GradientBuckets& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i].tensor.add_(other.bucket(i));
}

void GradientBuckets::zero() {
  for (Bucket& bucket : buckets_) bucket.tensor.zero_();
}

void GradientBuckets::drop_signs_of_zeros() {
  for (Bucket& bucket : buckets_) bucket.tensor.add_(0.0);
}

}  // namespace gallop::parallel
