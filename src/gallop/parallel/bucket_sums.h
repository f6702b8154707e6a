#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gallop/parallel/gradient_buckets.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// How what is in buckets becomes the sum over all processes. In all of them buckets are started
/// and finished in one order.
class BucketSums {
 public:
  virtual ~BucketSums() = default;
  virtual void start(size_t bucket) = 0;
  virtual void finish(size_t bucket) = 0;
  /// What is summed where all buckets are started and then finished, in this order.
  virtual std::vector<at::Tensor> sums() const = 0;
  /// Discards what was summed last, and begins again.
  virtual void forget() {}
  /// What it works on besides the buckets.
  virtual NamedTensors state() const { return {}; }
  /// See Strategy::rank_state() and PowerSgd::add_rank_state().
  virtual NamedTensors rank_state() const { return {}; }
  virtual void add_rank_state(const NamedTensors& /*saved*/, double /*share*/) {}
};

struct CompressionConfig {
  /// "none"; "bf16" or "fp16", in which buckets of fp32 are rounded and added; or "powersgd".
  std::string format = "none";
  int64_t rank = 2;  ///< Of PowerSGD.
};

/// For buckets that outlive it. PowerSGD (Vogels, Karimireddy and Jaggi, "PowerSGD: practical
/// low-rank gradient compression for distributed optimization", NeurIPS 2019) sums two factors of
/// such a rank for each gradient that is a matrix of at least twice as many numbers, and adds what
/// they leave out to the next gradient: not the sum, but near it over many steps. What each process
/// has left out, and the factors that it begins with, are dropped where a sum is discarded.
std::unique_ptr<BucketSums> make_bucket_sums(const CompressionConfig& config,
                                             const GradientBuckets& buckets, int processes);

}  // namespace gallop::parallel
