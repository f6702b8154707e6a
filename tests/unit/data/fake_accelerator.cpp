#include "unit/data/fake_accelerator.h"

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include <ATen/EmptyTensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

namespace gallop::data {

namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
const c10::Device kDevice(kType, 0);

constexpr c10::StreamId kCopyStream = 1;

struct Stream {
  std::deque<std::function<void()>> waiting;
  int64_t done = 0;

  int64_t submitted() const { return done + static_cast<int64_t>(waiting.size()); }
  void run_until(int64_t count) {
    for (; done < count; ++done) {
      waiting.front()();
      waiting.pop_front();
    }
  }
};

struct Mark {
  c10::StreamId stream;
  int64_t count;
};

std::map<c10::StreamId, Stream>& streams() {
  static std::map<c10::StreamId, Stream> all;
  return all;
}

c10::StreamId current = 0;
int64_t waits = 0;

class Memory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = c10::alloc_cpu(bytes);
    return {data, data, c10::free_cpu, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return c10::free_cpu; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

Memory memory;

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const override { return stream(current); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    return stream(kCopyStream);
  }
  c10::Stream exchangeStream(c10::Stream next) const override {
    return stream(std::exchange(current, next.id()));
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event == nullptr) *event = new Mark;
    *static_cast<Mark*>(*event) = {stream.id(), streams()[stream.id()].submitted()};
  }
  void block(void* event, const c10::Stream& stream) const override {
    const Mark mark = *static_cast<const Mark*>(event);
    streams()[stream.id()].waiting.emplace_back(
        [mark] { streams()[mark.stream].run_until(mark.count); });
  }
  void synchronizeEvent(void* event) const override {
    waits += 1;
    const auto* mark = static_cast<const Mark*>(event);
    streams()[mark->stream].run_until(mark->count);
  }
  bool queryEvent(void*) const override { return false; }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Mark*>(event);
  }

 private:
  static c10::Stream stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, kDevice, id);
  }
};

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout>, std::optional<c10::Device>, std::optional<bool>,
                 std::optional<c10::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   dtype.value_or(c10::kFloat), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                         std::optional<c10::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &memory,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           dtype.value_or(c10::kFloat));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (from.device() == to.device()) {
    run_current_stream();
    const auto on_cpu = [](const at::Tensor& tensor) {
      return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), tensor.dtype());
    };
    on_cpu(to).copy_(on_cpu(from));
    return to;
  }
  TORCH_CHECK(from.strides() == to.strides() && from.dtype() == to.dtype());
  const auto copy = [source = from.const_data_ptr(), target = to, bytes = from.nbytes()] {
    std::memcpy(target.mutable_data_ptr(), source, bytes);
  };
  Stream& stream = streams()[current];
  stream.waiting.emplace_back(copy);
  if (!non_blocking) {
    waits += 1;
    stream.run_until(stream.submitted());
  }
  return to;
}

void record_stream(at::Tensor&, c10::Stream) {}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("_copy_from", copy_from);
  library.impl("record_stream", record_stream);
}

c10::Device fake_accelerator() {
  static const bool registered = [] {
    c10::impl::registerDeviceGuard(kType, new Guard);
    return true;
  }();
  (void)registered;
  return kDevice;
}

int64_t host_waits() { return waits; }

void note_host_wait() { waits += 1; }

void run_current_stream() {
  Stream& stream = streams()[current];
  stream.run_until(stream.submitted());
}

int64_t copies_in_flight() { return static_cast<int64_t>(streams()[kCopyStream].waiting.size()); }

}  // namespace gallop::data
