#include "gallop/data/device_loader.h"

#include <utility>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "gallop/base/trace.h"
#include "gallop/data/batch_transform.h"

namespace gallop::data {

namespace {

LoaderConfig with_buffers_for(c10::Device device, LoaderConfig config) {
  config.pinned = device.is_cuda();
  return config;
}

c10::Stream copy_stream(c10::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  return device.is_cpu() ? guard.getStream(device) : guard.getStreamFromGlobalPool(device);
}

}  // namespace

DeviceLoader::DeviceLoader(const Samples& samples, LoaderConfig config, const LoaderState& start,
                           c10::Device device)
    : loader_(samples, with_buffers_for(device, config), start),
      transforms_(std::move(config.transforms)),
      device_(device),
      state_(loader_.state()),
      copies_(copy_stream(device)),
      copied_{c10::Event(device.type()), c10::Event(device.type())} {}

DeviceLoader::Staged DeviceLoader::stage(const StopRequest* stop) {
  Staged staged;
  staged.event = taken_ % copied_.size();
  c10::Event& copied = copied_[staged.event];
  copied.synchronize();
  try {
    staged.batch = loader_.next(stop);
  } catch (...) {
    staged.error = std::current_exception();
  }
  if (staged.batch || staged.error) ++taken_;
  staged.state = loader_.state();
  if (!staged.batch) return staged;
  const TraceSpan span(SpanKind::kCopy, "host-to-device copy");
  const c10::StreamGuard guard(copies_);
  staged.batch->to(device_, /*non_blocking=*/true);
  copied.record(copies_);
  return staged;
}

std::optional<Batch> DeviceLoader::next(const StopRequest* stop) {
  if (device_.is_cpu()) {
    auto batch = loader_.next(stop);
    state_ = loader_.state();
    if (batch) transform(*batch);
    return batch;
  }
  if (stop != nullptr && stop->requested()) return std::nullopt;
  Staged staged = ahead_ ? std::move(*ahead_) : stage(stop);
  ahead_.reset();
  if (staged.error) std::rethrow_exception(staged.error);
  if (!staged.batch) return std::nullopt;
  // Prefetch only a batch that is ready: waiting for it would delay the current batch.
  if (loader_.ready()) ahead_ = stage(stop);
  state_ = staged.state;
  const c10::Stream computes = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  copied_[staged.event].block(computes);
  for (const at::Tensor& tensor : staged.batch->tensors) tensor.record_stream(computes);
  transform(*staged.batch);
  return std::move(staged.batch);
}

void DeviceLoader::transform(Batch& batch) const {
  if (!transforms_) return;
  const TraceSpan span(SpanKind::kData, "batch transforms");
  transforms_->apply({.seed = static_cast<uint64_t>(state_.seed)}, batch);
}

void DeviceLoader::seek(const LoaderState& state) {
  for (const c10::Event& event : copied_) event.synchronize();
  ahead_.reset();
  loader_.seek(state);
  state_ = loader_.state();
}

}  // namespace gallop::data
