#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gallop/base/stop.h"
#include "gallop/data/batch.h"
#include "gallop/data/batch_plan.h"
#include "gallop/data/samples.h"

namespace gallop::data {

class BatchTransforms;

/// The position of a loader, its complete state. All fields except `skipped` are equal in all
/// processes that load slices of the same batches, and do not depend on the number of processes.
struct LoaderState {
  int64_t seed = 0;
  int64_t epoch = 0;
  int64_t position = 0;  ///< Samples of the epoch already delivered; reset to 0 at its end.
  int64_t skipped = 0;   ///< Broken samples left out since the start of the run.
};

struct LoaderConfig {
  int64_t batch = 1;
  /// Smaller sizes than `batch`, in ascending order of positions; empty: all batches have `batch`.
  std::vector<BatchSizeChange> changes{};
  int threads = 0;         ///< 0: fill batches in the caller's thread.
  int prefetch = 4;        ///< Batches prepared ahead.
  bool shuffle = true;     ///< Keyed permutation of (seed, epoch); false: in order.
  bool drop_last = false;  ///< Drop an incomplete last batch.
  bool one_epoch = false;  ///< Stop at the end of the first epoch.
  bool pinned = false;     ///< Page-locked buffers, for copies to a GPU.
  bool packs = false;      ///< Several samples in a row; see data/packing.h.
  /// Delivers slice `part` of `parts` of each batch. The slices are contiguous and differ by at
  /// most one sample; a slice may be empty.
  int part = 0, parts = 1;
  /// The batches of an epoch, if they differ in size, in place of `batch`; null: they do not.
  std::shared_ptr<const BatchPlan> plan{};
  /// Applied to each batch by DeviceLoader, or by who uses a Loader; null: none. The loader
  /// delivers the partner rows that they need.
  std::shared_ptr<const BatchTransforms> transforms{};
};

/// The batches of an epoch, if LoaderConfig::plan says so; otherwise 0.
inline int64_t planned_batches(const LoaderConfig& config) {
  return config.plan ? config.plan->batches() : 0;
}

/// Delivers batches in an order that depends only on (seed, epoch, position), not on the number of
/// threads. A batch's tensors are valid until the second next call of next() or the next seek(), as
/// buffers are reused. Not thread-safe: only one thread may use a loader at a time.
class Loader {
 public:
  /// `samples` must outlive the loader. Throws DataError if there are no samples, UsageError if
  /// `start` does not fit them, DeviceError if the buffers cannot be allocated.
  Loader(const Samples& samples, const LoaderConfig& config, const LoaderState& start);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Returns the next batch, across epochs without end, or nullopt after the first epoch with
  /// `one_epoch` and once `stop` is requested. An error of Samples::fill() is thrown once, in place
  /// of its batch; the next call continues with the batch after it. Waits for the threads in short
  /// slices of time, so that `stop` is noticed.
  std::optional<Batch> next(const StopRequest* stop = nullptr);

  /// Whether next() would return without waiting. Always false if `threads` is 0.
  bool ready() const;

  /// The state after the last batch that next() returned; a loader started from it continues there.
  LoaderState state() const;
  /// Moves to any position in O(1). Throws UsageError if the state does not fit the samples.
  void seek(const LoaderState& state);
  /// Replaces LoaderConfig::changes before a seek().
  void set_batch_sizes(std::vector<BatchSizeChange> changes);

  int64_t batches_per_epoch() const;
  /// Seconds that next() has waited for data so far.
  double wait_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gallop::data
