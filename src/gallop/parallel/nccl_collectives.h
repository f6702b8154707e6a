#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "gallop/parallel/nccl.h"

namespace gallop::parallel {

/// A collective on GPUs that failed, or did not complete in time.
class GpuCallFailed : public std::exception {
 public:
  GpuCallFailed(int64_t call, std::string reason) : call_(call), reason_(std::move(reason)) {}
  const char* what() const noexcept override { return reason_.c_str(); }
  int64_t call() const { return call_; }

 private:
  int64_t call_;
  std::string reason_;
};

/// Collectives of tensors on GPUs, one GPU per process, by NCCL on a separate
/// stream. Failures are detected later than the call: a thread watches all calls in flight and
/// aborts them all if one fails or exceeds its timeout, so that no process waits forever. All
/// functions must be called from one other thread.
class NcclCollectives {
 public:
  /// All processes must construct it at the same time. `from_first` returns the text of rank 0.
  /// Throws DeviceError if that takes longer than `seconds` or NCCL reports an error.
  NcclCollectives(std::shared_ptr<const Nccl> nccl, c10::Device device, int rank, int size,
                  const std::function<std::string(const std::string&)>& from_first, double seconds);
  ~NcclCollectives();
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  /// Starts an all-reduce of the tensor, which must be dense, after all pending work of the current
  /// stream. `call` is its number, and `seconds` its timeout. Throws GpuCallFailed for any call
  /// that has failed so far.
  void all_reduce_async(const at::Tensor& tensor, int64_t call, double seconds);
  /// As all_reduce_async(), for a broadcast from rank 0.
  void broadcast_async(const at::Tensor& tensor, int64_t call, double seconds);

  /// As all_reduce_async(), for the collectives of Collectives of these names.
  void all_to_all_async(const at::Tensor& output, const at::Tensor& input, c10::IntArrayRef receive,
                        c10::IntArrayRef send, int64_t call, double seconds);
  void all_gather_async(const at::Tensor& tensor, c10::IntArrayRef sizes, int64_t call,
                        double seconds);
  void send_async(const at::Tensor& tensor, int to, int64_t call, double seconds);
  void recv_async(const at::Tensor& tensor, int from, int64_t call, double seconds);

  /// Makes the current stream, not this thread, wait for the collective on this tensor.
  void wait(const at::Tensor& tensor);

  /// Throws GpuCallFailed if any call has failed so far.
  void check();
  /// Waits for all calls in flight. Throws GpuCallFailed.
  void finish();

  /// The numbers of the calls that have ended since the last take_completed().
  std::vector<int64_t> take_completed();

 private:
  using Clock = std::chrono::steady_clock;
  struct InFlight {
    int64_t call = 0;
    at::Tensor tensor, input;  ///< Kept alive.
    std::shared_ptr<c10::Event> done;
    Clock::time_point deadline;
    double seconds = 0;
  };

  void start(const at::Tensor& tensor, int64_t call, double seconds,
             const std::function<int(void* stream)>& enqueue, const at::Tensor& input = {});
  int as_group(const std::function<int()>& enqueue);
  int wait_until_settled(int result, Clock::time_point deadline);
  std::string describe(int result) const;
  void watch_calls();
  std::string failure_reason(const InFlight& first) const;
  void abort_all();

  std::shared_ptr<const Nccl> nccl_;
  c10::Device device_;
  c10::Stream stream_;
  void* communicator_ = nullptr;  ///< Null once it is aborted.

  std::map<const void*, std::shared_ptr<c10::Event>> started_;  ///< By the address of the tensor's
                                                                ///< memory.

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<InFlight> in_flight_;
  std::vector<int64_t> completed_;
  std::unique_ptr<GpuCallFailed> failure_;
  bool is_closed_ = false;
  std::thread watcher_;
};

}  // namespace gallop::parallel
