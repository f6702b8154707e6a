#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "gallop/data/loader.h"

namespace gallop::data {

/// A Loader whose batches are on the compute device. For an accelerator, the next batch is copied
/// from page-locked buffers on a separate stream while the device works on the current one; on the
/// CPU nothing is copied. LoaderConfig::transforms are then applied. Not thread-safe: only one
/// thread may use it at a time.
class DeviceLoader {
 public:
  /// Like Loader; `config.pinned` is set if the device needs it.
  DeviceLoader(const Samples& samples, LoaderConfig config, const LoaderState& start,
               c10::Device device);

  /// Like Loader::next(). The batch is ready for work on the current stream after this call.
  std::optional<Batch> next(const StopRequest* stop = nullptr);

  /// The state after the last batch that next() returned, regardless of prefetched copies.
  LoaderState state() const { return state_; }
  /// Like Loader::seek(); discards prefetched copies.
  void seek(const LoaderState& state);
  /// Like Loader::set_batch_sizes().
  void set_batch_sizes(std::vector<BatchSizeChange> changes) {
    loader_.set_batch_sizes(std::move(changes));
  }

  int64_t batches_per_epoch() const { return loader_.batches_per_epoch(); }
  double wait_seconds() const { return loader_.wait_seconds(); }

 private:
  // A batch whose copy was started, or the error that prevented it from being read.
  struct Staged {
    std::optional<Batch> batch;
    std::exception_ptr error;
    LoaderState state;  // After it.
    size_t event = 0;
  };
  Staged stage(const StopRequest* stop);
  void transform(Batch& batch) const;

  Loader loader_;
  std::shared_ptr<const BatchTransforms> transforms_;
  c10::Device device_;
  LoaderState state_;
  c10::Stream copies_;
  // Events of the last two copies. The loader refills a buffer two batches later.
  std::array<c10::Event, 2> copied_;
  size_t taken_ = 0;  // Batches, or errors in place of batches, taken from the loader.
  std::optional<Staged> ahead_;
};

}  // namespace gallop::data
