#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/parallel/bucket_sums.h"
#include "gallop/parallel/gradient_buckets.h"
#include "gallop/parallel/gradient_hooks.h"
#include "gallop/parallel/strategy.h"

// Internal to parallel/: what data-parallel strategies with buckets of gradients share.
namespace gallop::parallel {

/// The parameters of a model in the order in which a backward pass produces their gradients, as
/// indices. Those without a known place come last, in reverse order.
std::vector<size_t> in_gradient_order(const ModelTensors& model);

void append(std::vector<PendingCollective>& calls, std::vector<PendingCollective> more);

/// Buffers, which become their means over all processes. Batch counters do not increase in a
/// process without samples, and become the maximum.
class SharedStatistics {
 public:
  explicit SharedStatistics(std::vector<at::Tensor> buffers);
  const at::Tensor& sums() const { return sums_; }
  void start() const;
  void finish(int processes) const;

 private:
  std::vector<at::Tensor> buffers_, places_;
  at::Tensor sums_;
};

/// A strategy whose processes have whole gradients, in buckets that are summed as soon as they are
/// full, while the backward pass continues. After it, gradients are views of the buckets, in which
/// further micro-batches accumulate. If buckets are not kept, each micro-batch is summed over all
/// processes, and parameters have no gradients.
class DataParallel : public Strategy {
 public:
  using MakeSums = std::function<std::unique_ptr<BucketSums>(GradientBuckets& buckets)>;

  /// `parameters`: those in the buckets, in their order. A single process has nothing to share:
  /// no buckets.
  DataParallel(Collectives& collectives, const ModelTensors& model, bool shares_batch_norm,
               const std::vector<at::Tensor>& parameters, GradientBuckets buckets,
               const MakeSums& make_sums);

  Collectives& collectives() override { return collectives_; }
  bool shares_batch_norm() const override { return shares_batch_norm_; }
  bool sums_each_micro_batch() const override { return !buckets_.are_kept(); }
  NamedTensors state() const override;
  std::optional<std::vector<PendingCollective>> collective_calls(int64_t passes) const override;
  NamedTensors rank_state() const override { return sums_->rank_state(); }
  /// If the number of processes has changed, each gets an equal fraction of the sum of all errors.
  void load_rank_state(const NamedTensors& saved, int rank, int size) override;
  void abort_sync() override;
  void begin_gradient_sync(const Pass& pass) override;
  void finish_gradient_sync() override;

 protected:
  const GradientBuckets& buckets() const { return buckets_; }
  /// The collectives of all buckets in their order, and of the statistics.
  std::vector<PendingCollective> calls_of_buckets() const { return sums_->collective_calls(); }
  std::vector<PendingCollective> calls_of_statistics() const;
  /// Whether gradients are moved into buckets, as they are at first, or stay where they are.
  void use_buckets(bool used) { uses_buckets_ = used; }
  /// From now on, buckets are started by start_buckets() alone.
  void defer_all_reduce() { is_deferred_ = true; }
  /// Starts the buckets before `end`, with zeros for gradients that are missing.
  void start_buckets(size_t end);

 private:
  void note_gradient(size_t parameter);
  void start_full_ones(size_t end);

  Collectives& collectives_;
  NamedTensors named_;
  bool shares_batch_norm_;
  std::vector<at::Tensor> parameters_;
  GradientBuckets buckets_;
  std::unique_ptr<BucketSums> sums_;
  SharedStatistics statistics_;
  GradientHooks hooks_;
  size_t started_ = 0;  // The number of buckets started in this step.
  bool uses_buckets_ = true;
  bool is_deferred_ = false;
  bool expects_ = false;
  bool is_last_ = true;  // The pass that is under way, of those of a step.
};

/// An option of strategies with batch norm: "averaged" or "synchronized"; see make_ddp().
void visit_batch_norm(config::Visitor& visitor, std::string& batch_norm);

}  // namespace gallop::parallel
