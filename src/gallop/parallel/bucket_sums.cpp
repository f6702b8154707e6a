#include "gallop/parallel/bucket_sums.h"

#include <utility>

#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/parallel/power_sgd.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

class PlainSums final : public BucketSums {
 public:
  explicit PlainSums(const GradientBuckets& buckets) : buckets_(buckets) {}
  void start(size_t bucket) override { all_reduce_async(buckets_.bucket(bucket)); }
  void finish(size_t bucket) override { wait_tensor(buckets_.bucket(bucket)); }
  std::vector<PendingCollective> collective_calls() const override {
    std::vector<at::Tensor> all;
    for (size_t i = 0; i < buckets_.size(); ++i) all.push_back(buckets_.bucket(i));
    return all_reduces_of(all);
  }

 private:
  const GradientBuckets& buckets_;
};

// Halves the bytes. fp16 averages instead of adding, as sums may exceed its range.
class RoundedSums final : public BucketSums {
 public:
  RoundedSums(const GradientBuckets& buckets, at::ScalarType format, int processes)
      : buckets_(buckets), factor_(format == at::kHalf ? processes : 1) {
    for (size_t i = 0; i < buckets.size(); ++i) {
      const at::Tensor& bucket = buckets.bucket(i);
      const bool is_wide = bucket.scalar_type() == at::kFloat;
      rounded_.push_back(is_wide ? at::zeros_like(bucket, bucket.options().dtype(format)) : bucket);
    }
  }

  void start(size_t bucket) override {
    const at::Tensor& wide = buckets_.bucket(bucket);
    if (is_rounded(bucket)) rounded_[bucket].copy_(factor_ > 1 ? wide.div(factor_) : wide);
    all_reduce_async(rounded_[bucket]);
  }

  void finish(size_t bucket) override {
    wait_tensor(rounded_[bucket]);
    if (!is_rounded(bucket)) return;
    const at::Tensor& wide = buckets_.bucket(bucket);
    wide.copy_(rounded_[bucket]);
    if (factor_ > 1) wide.mul_(factor_);
  }

  std::vector<PendingCollective> collective_calls() const override {
    return all_reduces_of(rounded_);
  }
  NamedTensors state() const override {
    NamedTensors all;
    for (size_t i = 0; i < rounded_.size(); ++i) {
      if (is_rounded(i)) all.push_back({fmt::format("rounded.{}", i), rounded_[i]});
    }
    return all;
  }

 private:
  bool is_rounded(size_t bucket) const {
    return !rounded_[bucket].is_same(buckets_.bucket(bucket));
  }

  const GradientBuckets& buckets_;
  int factor_;
  std::vector<at::Tensor> rounded_;
};

class PowerSgdSums final : public BucketSums {
 public:
  PowerSgdSums(const GradientBuckets& buckets, int64_t rank, int processes) {
    uint64_t number = 0;  // Index among all gradients, so that factors do not depend on buckets.
    for (size_t i = 0; i < buckets.size(); ++i) {
      const auto gradients = buckets.places(i);
      parts_.emplace_back(gradients, rank, processes, /*seed=*/number);
      number += gradients.size();
    }
  }
  void start(size_t bucket) override { parts_[bucket].start(); }
  void finish(size_t bucket) override { parts_[bucket].finish(); }
  std::vector<PendingCollective> collective_calls() const override {
    std::vector<at::Tensor> all;
    for (const PowerSgd& part : parts_) part.add_first_sums(all);
    for (const PowerSgd& part : parts_) part.add_second_sums(all);
    return all_reduces_of(all);
  }
  void forget() override {
    for (PowerSgd& part : parts_) part.forget();
  }
  NamedTensors rank_state() const override {
    NamedTensors all;
    for (const PowerSgd& part : parts_) {
      for (const auto& one : part.rank_state()) all.push_back(one);
    }
    return all;
  }
  void add_rank_state(const NamedTensors& saved, double share) override {
    for (PowerSgd& part : parts_) part.add_rank_state(saved, share);
  }
  NamedTensors state() const override {
    NamedTensors all;
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (const auto& [name, tensor] : parts_[i].state()) {
        all.push_back({fmt::format("power.{}.{}", i, name), tensor});
      }
    }
    return all;
  }

 private:
  std::vector<PowerSgd> parts_;
};

}  // namespace

std::unique_ptr<BucketSums> make_bucket_sums(const CompressionConfig& config,
                                             const GradientBuckets& buckets, int processes) {
  if (config.format == "none") return std::make_unique<PlainSums>(buckets);
  if (config.format == "bf16")
    return std::make_unique<RoundedSums>(buckets, at::kBFloat16, processes);
  if (config.format == "fp16") return std::make_unique<RoundedSums>(buckets, at::kHalf, processes);
  if (config.format == "powersgd") {
    return std::make_unique<PowerSgdSums>(buckets, config.rank, processes);
  }
  throw InternalError("bucket sums: no such format: " + config.format);
}

}  // namespace gallop::parallel
