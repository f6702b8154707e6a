#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/base/stop.h"
#include "gallop/data/samples.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::data {

class BatchTransform;

/// Some samples, ready for a training step: a batch, or this process's part of it.
struct Batch {
  const Fields* fields = nullptr;   ///< Those of the samples.
  std::vector<at::Tensor> tensors;  ///< One for each of them, [N, ...].
  int64_t skipped = 0;  ///< Broken samples left out; N plus these were asked for. N may be 0.
  int64_t epoch = 0;
  int64_t position = 0;    ///< Of the first sample in its epoch.
  int64_t whole_size = 0;  ///< Samples of all parts together, broken ones included.
  bool last_of_epoch = false;

  int64_t size() const { return tensors.front().size(0); }
  const at::Tensor& input() const { return tensors[fields->input_index()]; }
  const at::Tensor& target() const { return tensors[fields->target_index()]; }
  /// A field by its name. Throws UsageError with the names that there are.
  const at::Tensor& operator[](std::string_view name) const { return tensors[fields->find(name)]; }
  /// As a training step takes it: "input" and "target", then the other fields by their names.
  NamedTensors by_role() const;
  void to(c10::Device device, bool non_blocking = false);
};

/// Where a loader stands. Four integers are all of its state; but for the last it is the same in
/// all that deliver parts of the same batches, and for any number of them.
struct LoaderState {
  int64_t seed = 0;
  int64_t epoch = 0;
  int64_t position = 0;  ///< Samples of the epoch already delivered; at its end, 0 of the next one.
  int64_t skipped = 0;   ///< Broken samples left out since the start of the run.
};

struct LoaderConfig {
  int64_t batch = 1;
  int threads = 0;         ///< 0 fills batches in the caller's thread.
  int prefetch = 4;        ///< Batches prepared ahead.
  bool shuffle = true;     ///< Keyed permutation of (seed, epoch); else in order.
  bool drop_last = false;  ///< Leave out an incomplete last batch.
  bool one_epoch = false;  ///< End with the epoch that it starts in.
  bool pinned = false;     ///< Page-locked buffers, for copies to a GPU.
  /// Delivers the part'th of so many parts of each batch, which lie side by side and differ by one
  /// sample at most; a part may be empty.
  int part = 0, parts = 1;
  /// What a DeviceLoader does to every batch; null: nothing.
  std::shared_ptr<const std::vector<std::unique_ptr<BatchTransform>>> transforms{};
};

/// Delivers batches in an order that depends on (seed, epoch, position) only, whatever the number
/// of threads. A batch's tensors are valid until the next-but-one call of next() or the next
/// seek(); buffers are reused. One thread uses a loader at a time.
class Loader {
 public:
  /// `samples` must outlive the loader. Throws DataError where there are none, UsageError where the
  /// start does not fit them, DeviceError where the buffers cannot be had.
  Loader(const Samples& samples, const LoaderConfig& config, const LoaderState& start);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch; epochs follow one another without end, or with `one_epoch` nothing comes after
  /// the first. Waits for the threads, in slices, and returns nothing once `stop` is requested.
  /// Throws what Samples::fill threw, once and in the batch's turn; the call after that goes on
  /// with the batch after it.
  std::optional<Batch> next(const StopRequest* stop = nullptr);

  /// Whether next() would return at once. Always false without threads, which prepare batches.
  bool ready() const;

  /// The state after the batches that next() has returned: continuing from it delivers the rest.
  LoaderState state() const;
  /// Goes anywhere in O(1). Throws UsageError where the state does not fit the samples.
  void seek(const LoaderState& state);

  int64_t batches_per_epoch() const;
  /// Seconds that next() has waited for data since the start.
  double wait_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gallop::data
