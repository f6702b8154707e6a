#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "gallop/parallel/nccl.h"

// GPUs of a machine without any: streams are threads, events and memory are the CPU's, and NCCL
// sums within this process. One GPU for each rank.
namespace gallop::parallel {

/// Executes queued work in order.
class FakeStream {
 public:
  FakeStream() : thread_([this] { run(); }) {}
  ~FakeStream() {
    push(nullptr);
    thread_.join();
  }
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;

  void push(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_all();
  }

 private:
  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty(); });
      const auto work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      if (!work) return;
      work();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::thread thread_;
};

/// A flag that others wait for.
class FakeEvent {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_set_; });
  }
  bool is_set() {
    const std::lock_guard lock(mutex_);
    return is_set_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

/// Registered for CUDA, which is absent: see C10_REGISTER_GUARD_IMPL in the test.
class FakeGpus final : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::DeviceType static_type = c10::kCUDA;
  static constexpr c10::DeviceIndex kCount = 4;
  static constexpr c10::StreamId kDefault = 0, kPool = 1;

  static FakeStream& stream(c10::DeviceIndex device, c10::StreamId id) {
    static auto& streams = *new std::map<std::pair<int, int64_t>, std::unique_ptr<FakeStream>>;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    auto& stream = streams[{device, id}];
    if (!stream) stream = std::make_unique<FakeStream>();
    return *stream;
  }
  static FakeStream& stream(const c10::Stream& stream) {
    return FakeGpus::stream(stream.device_index(), stream.id());
  }

  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::DeviceIndex deviceCount() const noexcept override { return kCount; }
  c10::Device getDevice() const override { return {c10::kCUDA, current()}; }
  void setDevice(c10::Device device) const override { current() = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current() = device.index();
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    return {c10::kCUDA, std::exchange(current(), device.index())};
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, kDefault);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high*/) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, kPool);
  }
  c10::Stream exchangeStream(c10::Stream) const override { return getStream(getDevice()); }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return &FakeGpus::stream(stream);
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex /*device*/,
              const c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new std::shared_ptr<FakeEvent>;
    auto& flag = of(*event);
    flag = std::make_shared<FakeEvent>();
    FakeGpus::stream(stream).push([flag] { flag->set(); });
  }
  void block(void* event, const c10::Stream& stream) const override {
    FakeGpus::stream(stream).push([flag = of(event)] { flag->wait(); });
  }
  bool queryEvent(void* event) const override { return of(event)->is_set(); }
  void destroyEvent(void* event, const c10::DeviceIndex /*device*/) const noexcept override {
    delete &of(event);
  }

 private:
  static std::shared_ptr<FakeEvent>& of(void* event) {
    return *static_cast<std::shared_ptr<FakeEvent>*>(event);
  }
  static c10::DeviceIndex& current() {
    static thread_local c10::DeviceIndex device = 0;
    return device;
  }
};

/// A tensor that says it is on GPU `index`, with the memory of one of the CPU that outlives it.
inline at::Tensor on_gpu(const at::Tensor& tensor, int index) {
  const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
  return at::for_blob(tensor.mutable_data_ptr(), tensor.sizes())
      .options(tensor.options().device(device))
      .target_device(device)
      .make_tensor();
}

/// NCCL as far as it is asked for. Errors are injected by its numbers.
class FakeNccl {
 public:
  static constexpr int kUnhandledCudaError = 1, kRemoteError = 6;

  static std::shared_ptr<const Nccl> functions() {
    auto nccl = std::make_shared<Nccl>();
    nccl->error_text = [](int result) {
      return result == kRemoteError ? "remote process exited" : "unhandled cuda error";
    };
    nccl->last_error = [](void*) { return ""; };
    nccl->make_id = [](NcclId* id) {
      static std::atomic<int> next = 1;
      const std::string text = std::to_string(next++);
      std::memcpy(id->bytes, text.data(), text.size());
      return fails_to_make_id ? kUnhandledCudaError : static_cast<int>(Nccl::kSuccess);
    };
    nccl->init = init;
    nccl->state = [](void* communicator, int* state) {
      auto& one = *static_cast<Communicator*>(communicator);
      const std::lock_guard lock(one.group->mutex);
      const bool all = one.group->came == one.size;
      *state = one.state != Nccl::kSuccess ? one.state : all ? Nccl::kSuccess : Nccl::kInProgress;
      return static_cast<int>(Nccl::kSuccess);
    };
    nccl->abort = [](void* communicator) {
      auto& one = *static_cast<Communicator*>(communicator);
      const std::lock_guard lock(one.group->mutex);
      one.is_aborted = true;
      one.group->changed.notify_all();
      return static_cast<int>(Nccl::kSuccess);
    };
    nccl->all_reduce = [](const void*, void* data, size_t count, int format, int, void* to,
                          void* stream) { return enqueue(to, stream, data, count, format, kSum); };
    nccl->broadcast = [](const void*, void* data, size_t count, int format, int root, void* to,
                         void* stream) { return enqueue(to, stream, data, count, format, root); };
    nccl->send = [](const void* data, size_t bytes, int, int peer, void* to, void* stream) {
      auto& one = *static_cast<Communicator*>(to);
      return add_to_group(
          stream, [=, &one]() { put(one, data, bytes, peer); }, true);
    };
    nccl->recv = [](void* data, size_t bytes, int, int peer, void* to, void* stream) {
      auto& one = *static_cast<Communicator*>(to);
      return add_to_group(
          stream, [=, &one]() { get(one, data, bytes, peer); }, false);
    };
    nccl->group_start = [] {
      in_group = true;
      return static_cast<int>(Nccl::kSuccess);
    };
    nccl->group_end = [] {
      in_group = false;
      run_group();
      return static_cast<int>(Nccl::kSuccess);
    };
    return nccl;
  }

  static inline std::atomic<bool> fails_to_make_id = false;
  /// Delay of the calls of rank 1 from the second on.
  static inline std::atomic<int> state_later = Nccl::kSuccess;

 private:
  static constexpr int kSum = -1;  // In place of a root.

  // What a group of calls does on its stream: sends are buffered, and go first.
  struct GroupedCalls {
    void* stream;  // Null in a thread's first group, as in GroupedCalls().
    std::vector<std::function<void()>> sends, others;
  };
  static inline thread_local bool in_group = false;
  static inline thread_local GroupedCalls grouped;

  static int add_to_group(void* stream, std::function<void()> call, bool sends) {
    grouped.stream = stream;
    (sends ? grouped.sends : grouped.others).push_back(std::move(call));
    if (!in_group) run_group();
    return Nccl::kSuccess;
  }
  static void run_group() {
    const GroupedCalls calls = std::exchange(grouped, GroupedCalls());
    if (calls.stream == nullptr) return;
    static_cast<FakeStream*>(calls.stream)->push([calls] {
      for (const auto& call : calls.sends) call();
      for (const auto& call : calls.others) call();
    });
  }

  struct Call {
    std::vector<char> sum;
    int came = 0, left = 0;
  };
  struct Group {
    std::mutex mutex;
    std::condition_variable changed;
    int came = 0;
    std::map<int64_t, Call> calls;
    std::map<std::pair<int, int>, std::deque<std::vector<char>>> sent;  // By sender and receiver.
  };
  struct Communicator {
    std::shared_ptr<Group> group;
    int rank = 0, size = 0, state = Nccl::kSuccess;
    bool is_aborted = false;
    int64_t calls = 0;
  };

  static int init(void** communicator, int size, NcclId id, int rank, NcclConfig* config) {
    if (config->magic != 0xcafebeef || config->size != 24 || config->blocking != 0) return 4;
    static auto& groups = *new std::map<std::string, std::shared_ptr<Group>>;
    static auto& all = *new std::vector<std::unique_ptr<Communicator>>;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    auto& group = groups[std::string(id.bytes)];
    if (!group) group = std::make_shared<Group>();
    auto one = std::make_unique<Communicator>();
    one->group = group;
    one->rank = rank;
    one->size = size;
    *communicator = one.get();
    all.push_back(std::move(one));
    const std::lock_guard group_lock(group->mutex);
    group->came += 1;
    return Nccl::kInProgress;
  }

  template <typename Number>
  static void add(std::vector<char>& sum, const void* data, size_t count) {
    const auto* const from = static_cast<const Number*>(data);
    auto* const to = reinterpret_cast<Number*>(sum.data());
    for (size_t i = 0; i < count; ++i) to[i] += from[i];
  }

  static void put(Communicator& one, const void* data, size_t bytes, int peer) {
    const auto* const from = static_cast<const char*>(data);
    const std::lock_guard lock(one.group->mutex);
    one.group->sent[{one.rank, peer}].emplace_back(from, from + bytes);
    one.group->changed.notify_all();
  }
  static void get(Communicator& one, void* data, size_t bytes, int peer) {
    std::unique_lock lock(one.group->mutex);
    auto& sent = one.group->sent[{peer, one.rank}];
    one.group->changed.wait(lock, [&] { return one.is_aborted || !sent.empty(); });
    if (sent.empty()) return;
    if (sent.front().size() == bytes) std::memcpy(data, sent.front().data(), bytes);
    sent.pop_front();
  }

  // `root`: of a broadcast, or kSum.
  static int enqueue(void* to, void* stream, void* data, size_t count, int format, int root) {
    auto& one = *static_cast<Communicator*>(to);
    const int64_t number = one.calls++;
    if (one.rank == 1 && number >= 1) one.state = state_later;
    return add_to_group(
        stream, [=, &one]() { take_part(one, number, data, count, format, root); }, false);
  }

  static void take_part(Communicator& one, int64_t number, void* data, size_t count, int format,
                        int root) {
    const size_t bytes = count * (format == Nccl::kFp64 || format == Nccl::kInt64 ? 8
                                  : format == Nccl::kFp32                         ? 4
                                  : format == Nccl::kUint8                        ? 1
                                                                                  : 2);
    std::unique_lock lock(one.group->mutex);
    Call& call = one.group->calls[number];
    call.sum.resize(bytes);
    if (root != kSum) {
      if (one.rank == root) std::memcpy(call.sum.data(), data, bytes);
    } else {
      switch (format) {
        case Nccl::kFp32: add<float>(call.sum, data, count); break;
        case Nccl::kFp64: add<double>(call.sum, data, count); break;
        case Nccl::kInt64: add<int64_t>(call.sum, data, count); break;
        case Nccl::kUint8: add<uint8_t>(call.sum, data, count); break;
        case Nccl::kFp16: add<at::Half>(call.sum, data, count); break;
        default: add<at::BFloat16>(call.sum, data, count);
      }
    }
    call.came += 1;
    one.group->changed.notify_all();
    one.group->changed.wait(lock, [&] { return one.is_aborted || call.came == one.size; });
    if (call.came == one.size) std::memcpy(data, call.sum.data(), bytes);
  }
};

}  // namespace gallop::parallel
