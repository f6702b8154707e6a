#include "gallop/parallel/gradient_buckets.h"

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

GradientBuckets::GradientBuckets(const std::vector<std::vector<at::Tensor>>& lists) {
  for (const auto& list : lists) add_bucket(list.data(), list.data() + list.size());
}

void GradientBuckets::add_bucket(const at::Tensor* begin, const at::Tensor* end) {
  int64_t elements = 0;
  const auto element = static_cast<int64_t>(begin->element_size());
  for (const at::Tensor* one = begin; one != end; ++one) elements += padded(*one) / element;
  const auto count = static_cast<int64_t>(end - begin);
  buckets_.push_back({.tensor = at::zeros({elements}, begin->options().requires_grad(false)),
                      .parameters = count,
                      .missing = count});
  int64_t offset = 0;
  for (const at::Tensor* one = begin; one != end; ++one) {
    slots_.push_back(
        {.parameter = *one,
         .place = buckets_.back().tensor.as_strided(one->sizes(), one->strides(), offset),
         .bucket = buckets_.size() - 1});
    offset += padded(*one) / element;
  }
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
  for (size_t i = 0; i < buckets_.size(); ++i) {
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
  at::Tensor& gradient = slot.parameter.mutable_grad();
  if (gradient.is_same(slot.place)) return;
  if (gradient.defined()) {
    slot.place.copy_(gradient);
  } else {
    slot.place.zero_();
  }
  gradient = slot.place;
}

bool GradientBuckets::fill(size_t parameter) {
  move(parameter);
  Slot& slot = slots_[parameter];
  slot.is_filled = true;
  return --buckets_[slot.bucket].missing == 0;
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
