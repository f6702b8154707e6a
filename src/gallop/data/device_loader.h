#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <optional>

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "gallop/data/loader.h"

namespace gallop::data {

/// A Loader whose batches lie on the device that computes. On an accelerator the next batch is
/// copied from page-locked buffers, on a stream of its own, while the device works on the one
/// before; on the CPU nothing is copied. Then LoaderConfig::transforms change it. One thread uses
/// it at a time.
class DeviceLoader {
 public:
  /// As Loader; `config.pinned` is set where the device needs it.
  DeviceLoader(const Samples& samples, LoaderConfig config, const LoaderState& start,
               c10::Device device);

  /// As Loader::next(). The batch is ready for what the current stream does after this call.
  std::optional<Batch> next(const StopRequest* stop = nullptr);

  /// The state after the batches that next() has returned, whatever was copied ahead.
  LoaderState state() const { return state_; }
  /// As Loader::seek(); drops what was copied ahead.
  void seek(const LoaderState& state);

  int64_t batches_per_epoch() const { return loader_.batches_per_epoch(); }
  double wait_seconds() const { return loader_.wait_seconds(); }

 private:
  // A batch whose copy was started, or what kept it from being read.
  struct Staged {
    std::optional<Batch> batch;
    std::exception_ptr error;
    LoaderState state;  // After it.
    size_t event = 0;
  };
  Staged stage(const StopRequest* stop);
  void transform(Batch& batch) const;

  Loader loader_;
  std::shared_ptr<const std::vector<std::unique_ptr<BatchTransform>>> transforms_;
  c10::Device device_;
  LoaderState state_;
  c10::Stream copies_;
  // Of the last two copies. A buffer of the loader is filled again two batches later.
  std::array<c10::Event, 2> copied_;
  size_t taken_ = 0;  // Batches, and errors in place of one, that came from the loader.
  std::optional<Staged> ahead_;
};

}  // namespace gallop::data
