#include "gallop/parallel/nccl_collectives.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::parallel {

namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(20);
constexpr auto kInitPollInterval = std::chrono::microseconds(50);

std::chrono::steady_clock::time_point after(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::microseconds(static_cast<int64_t>(1e6 * seconds));
}

int format_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat: return Nccl::kFp32;
    case at::kDouble: return Nccl::kFp64;
    case at::kHalf: return Nccl::kFp16;
    case at::kBFloat16: return Nccl::kBf16;
    case at::kLong: return Nccl::kInt64;
    case at::kByte: return Nccl::kUint8;
    default:
      throw InternalError(
          fmt::format("NCCL cannot all-reduce {}", c10::toString(tensor.scalar_type())));
  }
}

}  // namespace

NcclCollectives::NcclCollectives(std::shared_ptr<const Nccl> nccl, c10::Device device, int rank,
                                 int size,
                                 const std::function<std::string(const std::string&)>& from_first,
                                 double seconds)
    : nccl_(std::move(nccl)),
      device_(device),
      // Collectives, for which other processes wait, have priority over computation.
      stream_(c10::impl::VirtualGuardImpl(device.type())
                  .getStreamFromGlobalPool(device, /*isHighPriority=*/true)) {
  const auto deadline = after(seconds);
  NcclId id;
  int result = Nccl::kSuccess;
  if (rank == 0) result = nccl_->make_id(&id);
  // The other processes must notice a failure, too.
  const std::string text =
      from_first(result == Nccl::kSuccess ? std::string(id.bytes, sizeof(id.bytes)) : "");
  if (text.size() == sizeof(id.bytes)) {
    std::memcpy(id.bytes, text.data(), text.size());
    NcclConfig config;
    result = nccl_->init(&communicator_, size, id, rank, &config);
    result = wait_until_settled(result, deadline);
  } else if (result == Nccl::kSuccess) {
    throw DeviceError("NCCL did not start in rank 0");
  }
  if (result != Nccl::kSuccess) {
    const std::string words =
        result == Nccl::kInProgress
            ? fmt::format("not all ranks connected within {}", format_duration(seconds))
            : describe(result);
    abort_all();
    throw DeviceError(fmt::format("NCCL did not start in rank {} of {} on {}: {}", rank, size,
                                  device_.str(), words));
  }
  watcher_ = std::thread([this] { watch_calls(); });
}

NcclCollectives::~NcclCollectives() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_all();
  watcher_.join();
  // An orderly shutdown would wait for the other processes.
  abort_all();
}

void NcclCollectives::all_reduce_async(const at::Tensor& tensor, int64_t call, double seconds) {
  const int format = format_of(tensor);
  start(tensor, call, seconds, [&](void* stream) {
    void* const data = tensor.mutable_data_ptr();
    return nccl_->all_reduce(data, data, static_cast<size_t>(tensor.numel()), format, Nccl::kSum,
                             communicator_, stream);
  });
}

void NcclCollectives::broadcast_async(const at::Tensor& tensor, int64_t call, double seconds) {
  start(tensor, call, seconds, [&](void* stream) {
    void* const data = tensor.mutable_data_ptr();
    return nccl_->broadcast(data, data, tensor.nbytes(), Nccl::kUint8, /*root=*/0, communicator_,
                            stream);
  });
}

// NCCL runs the calls of a group as one, which therefore cannot wait for each other.
int NcclCollectives::as_group(const std::function<int()>& enqueue) {
  const int begun = nccl_->group_start();
  if (begun != Nccl::kSuccess) return begun;
  const int result = enqueue();
  const int ended = nccl_->group_end();
  return result == Nccl::kSuccess || result == Nccl::kInProgress ? ended : result;
}

void NcclCollectives::all_to_all_async(const at::Tensor& output, const at::Tensor& input,
                                       c10::IntArrayRef receive, c10::IntArrayRef send,
                                       int64_t call, double seconds) {
  const auto element = static_cast<int64_t>(input.element_size());
  const auto enqueue = [&](void* stream) {
    const auto* from = static_cast<const char*>(input.const_data_ptr());
    auto* to = static_cast<char*>(output.mutable_data_ptr());
    int result = Nccl::kSuccess;
    const auto note = [&result](int next) {
      if (result == Nccl::kSuccess || result == Nccl::kInProgress) result = next;
    };
    for (size_t rank = 0; rank < send.size(); ++rank) {
      const auto peer = static_cast<int>(rank);
      const int64_t sent = send[rank] * element, received = receive[rank] * element;
      if (sent > 0) {
        note(nccl_->send(from, static_cast<size_t>(sent), Nccl::kUint8, peer, communicator_,
                         stream));
      }
      if (received > 0) {
        note(nccl_->recv(to, static_cast<size_t>(received), Nccl::kUint8, peer, communicator_,
                         stream));
      }
      from += sent;
      to += received;
    }
    return result;
  };
  start(
      output, call, seconds,
      [&](void* stream) { return as_group([&] { return enqueue(stream); }); }, input);
}

void NcclCollectives::all_gather_async(const at::Tensor& tensor, c10::IntArrayRef sizes,
                                       int64_t call, double seconds) {
  const auto enqueue = [&](void* stream) {
    auto* data = static_cast<char*>(tensor.mutable_data_ptr());
    int result = Nccl::kSuccess;
    for (size_t root = 0; root < sizes.size(); ++root) {
      const int64_t bytes = sizes[root] * static_cast<int64_t>(tensor.element_size());
      if (bytes > 0 && (result == Nccl::kSuccess || result == Nccl::kInProgress)) {
        result = nccl_->broadcast(data, data, static_cast<size_t>(bytes), Nccl::kUint8,
                                  static_cast<int>(root), communicator_, stream);
      }
      data += bytes;
    }
    return result;
  };
  start(tensor, call, seconds,
        [&](void* stream) { return as_group([&] { return enqueue(stream); }); });
}

void NcclCollectives::send_async(const at::Tensor& tensor, int to, int64_t call, double seconds) {
  start(tensor, call, seconds, [&](void* stream) {
    return nccl_->send(tensor.const_data_ptr(), tensor.nbytes(), Nccl::kUint8, to, communicator_,
                       stream);
  });
}

void NcclCollectives::recv_async(const at::Tensor& tensor, int from, int64_t call, double seconds) {
  start(tensor, call, seconds, [&](void* stream) {
    return nccl_->recv(tensor.mutable_data_ptr(), tensor.nbytes(), Nccl::kUint8, from,
                       communicator_, stream);
  });
}

void NcclCollectives::start(const at::Tensor& tensor, int64_t call, double seconds,
                            const std::function<int(void* stream)>& enqueue,
                            const at::Tensor& input) {
  const auto deadline = after(seconds);
  c10::Event is_ready(device_.type());
  is_ready.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  is_ready.block(stream_);
  auto done = std::make_shared<c10::Event>(device_.type());
  {
    const std::lock_guard lock(mutex_);
    if (failure_) throw GpuCallFailed(*failure_);
    int result = enqueue(stream_.native_handle());
    result = wait_until_settled(result, deadline);
    if (result != Nccl::kSuccess) {
      failure_ = std::make_unique<GpuCallFailed>(call, result == Nccl::kInProgress
                                                           ? "the NCCL call did not start in time"
                                                           : describe(result));
      abort_all();
      throw GpuCallFailed(*failure_);
    }
    done->record(stream_);
    in_flight_.push_back({call, tensor, input, done, deadline, seconds});
  }
  changed_.notify_all();
  started_.insert_or_assign(tensor.const_data_ptr(), std::move(done));
}

void NcclCollectives::wait(const at::Tensor& tensor) {
  const auto found = started_.find(tensor.const_data_ptr());
  if (found == started_.end())
    throw InternalError("no all-reduce of this tensor is in flight on a GPU");
  found->second->block(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  started_.erase(found);
  check();
}

void NcclCollectives::check() {
  const std::lock_guard lock(mutex_);
  if (failure_) throw GpuCallFailed(*failure_);
}

void NcclCollectives::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || in_flight_.empty(); });
  if (failure_) throw GpuCallFailed(*failure_);
}

std::vector<int64_t> NcclCollectives::take_completed() {
  const std::lock_guard lock(mutex_);
  return std::exchange(completed_, {});
}

// Waits for the result of a non-blocking call.
int NcclCollectives::wait_until_settled(int result, Clock::time_point deadline) {
  while (result == Nccl::kInProgress && Clock::now() < deadline) {
    std::this_thread::sleep_for(kInitPollInterval);
    int state = Nccl::kSuccess;
    const int status = nccl_->state(communicator_, &state);
    result = status == Nccl::kSuccess ? state : status;
  }
  return result;
}

std::string NcclCollectives::describe(int result) const {
  const char* const last = nccl_->last_error(communicator_);
  const std::string more = last != nullptr ? printable(last) : "";
  return fmt::format("NCCL says: {}{}{}", printable(nccl_->error_text(result)),
                     more.empty() ? "" : ": ", more);
}

void NcclCollectives::watch_calls() {
  c10::impl::VirtualGuardImpl(device_.type()).setDevice(device_);
  std::unique_lock lock(mutex_);
  while (!is_closed_ && !failure_) {
    if (in_flight_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const std::string reason = failure_reason(in_flight_.front());
    if (!reason.empty()) {
      failure_ = std::make_unique<GpuCallFailed>(in_flight_.front().call, reason);
      abort_all();
      changed_.notify_all();
      return;
    }
    if (in_flight_.front().done->query()) {
      completed_.push_back(in_flight_.front().call);
      in_flight_.pop_front();
      changed_.notify_all();
    } else {
      changed_.wait_for(lock, kPollInterval);
    }
  }
}

std::string NcclCollectives::failure_reason(const InFlight& first) const {
  int state = Nccl::kSuccess;
  const int status = nccl_->state(communicator_, &state);
  if (status != Nccl::kSuccess) return describe(status);
  if (state != Nccl::kSuccess && state != Nccl::kInProgress) return describe(state);
  try {
    if (first.done->query() || Clock::now() < first.deadline) return {};
  } catch (const std::exception& error) {
    const std::string_view text = error.what();
    return fmt::format("CUDA error: {}", printable(text.substr(0, text.find('\n'))));
  }
  return fmt::format("not done after {}", format_duration(first.seconds));
}

// Work on the GPU that waits for a collective then continues, with invalid results.
void NcclCollectives::abort_all() {
  if (communicator_ != nullptr) nccl_->abort(communicator_);
  communicator_ = nullptr;
}

}  // namespace gallop::parallel
