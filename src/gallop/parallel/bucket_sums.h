#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gallop/parallel/gradient_buckets.h"
#include "gallop/parallel/sums.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// Algorithm by which gradient buckets are all-reduced. All processes must start and finish the
/// buckets in the same order.
class BucketSums {
 public:
  virtual ~BucketSums() = default;
  /// Must be called before the buckets of a pass are started. If `accumulates`, their sums are
  /// added to those of the pass before; not every algorithm can.
  virtual void begin(bool /*accumulates*/) {}
  virtual void start(size_t bucket) = 0;
  virtual void finish(size_t bucket) = 0;
  /// The collectives when all buckets are started and then finished, in this order.
  virtual std::vector<PendingCollective> collective_calls() const = 0;
  /// Discards the last sums and resets the state.
  virtual void forget() {}
  /// Tensors other than the buckets that start() and finish() read or write.
  virtual NamedTensors state() const { return {}; }
  /// See Strategy::rank_state() and PowerSgd::add_rank_state().
  virtual NamedTensors rank_state() const { return {}; }
  virtual void add_rank_state(const NamedTensors& /*saved*/, double /*share*/) {}
};

struct CompressionConfig {
  /// "none"; "bf16" or "fp16", in which buckets of fp32 are rounded and added; or "powersgd".
  std::string format = "none";
  int64_t rank = 2;  ///< Rank of PowerSGD.
};

/// Makes the algorithm for buckets that outlive it. PowerSGD (Vogels, Karimireddy and Jaggi,
/// "PowerSGD: practical low-rank gradient compression for distributed optimization", NeurIPS 2019)
/// all-reduces two factors of the given rank for each gradient that is a matrix of at least twice
/// as many elements, and adds the approximation error to the next gradient (error feedback): the
/// result is not the exact sum, but close to it over many steps. If a sum is discarded, each
/// process resets its errors and factors.
std::unique_ptr<BucketSums> make_bucket_sums(const CompressionConfig& config,
                                             const GradientBuckets& buckets, int processes);

}  // namespace gallop::parallel
