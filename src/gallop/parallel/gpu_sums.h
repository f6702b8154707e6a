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

/// A call on GPUs has failed, or did not end in time.
class GpuCallFailed : public std::exception {
 public:
  GpuCallFailed(int64_t call, std::string reason) : call_(call), reason_(std::move(reason)) {}
  const char* what() const noexcept override { return reason_.c_str(); }
  int64_t call() const { return call_; }

 private:
  int64_t call_;
  std::string reason_;
};

/// Sums and copies of tensors that lie on GPUs, one for each process, by NCCL on a stream of their
/// own. What failed shows later than where it was called: a thread looks after all that is under
/// way, and where something fails or takes too long it ends all of it, so that no process waits for
/// ever. All functions but it are for one thread.
class GpuSums {
 public:
  /// All processes make one at the same time. `from_first` gives all the text that process 0 has.
  /// Throws DeviceError where that takes longer than so many seconds or NCCL says no.
  GpuSums(std::shared_ptr<const Nccl> nccl, c10::Device device, int rank, int size,
          const std::function<std::string(const std::string&)>& from_first, double seconds);
  ~GpuSums();
  GpuSums(const GpuSums&) = delete;
  GpuSums& operator=(const GpuSums&) = delete;

  /// Sums what is in the tensor, which is dense, once all is done that the current stream has to do
  /// until now. `call` numbers it, and it may take so many seconds. Throws GpuCallFailed for
  /// whatever has failed until now.
  void all_reduce_async(const at::Tensor& tensor, int64_t call, double seconds);
  /// The same for a copy of what process 0 has.
  void start_broadcast(const at::Tensor& tensor, int64_t call, double seconds);

  /// Lets the current stream wait for the sum or copy of this tensor, and not this thread.
  void wait(const at::Tensor& tensor);

  /// Whether nothing has failed until now: else throws GpuCallFailed.
  void check();
  /// Waits for all that is under way. Throws GpuCallFailed.
  void finish();

  /// The numbers of those that have ended since the last time.
  std::vector<int64_t> take_ended();

 private:
  using Clock = std::chrono::steady_clock;
  struct UnderWay {
    int64_t call = 0;
    at::Tensor tensor;  ///< Stays in memory.
    std::shared_ptr<c10::Event> done;
    Clock::time_point deadline;
    double seconds = 0;
  };

  void start(const at::Tensor& tensor, int64_t call, double seconds,
             const std::function<int(void* stream)>& enqueue);
  int settled(int result, Clock::time_point deadline);
  std::string describe(int result) const;
  void look_after_calls();
  std::string what_is_wrong(const UnderWay& first) const;
  void end_all();

  std::shared_ptr<const Nccl> nccl_;
  c10::Device device_;
  c10::Stream stream_;
  void* communicator_ = nullptr;  ///< Null from when it was ended.

  std::map<const void*, std::shared_ptr<c10::Event>> started_;  ///< By their tensor's memory.

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<UnderWay> under_way_;
  std::vector<int64_t> ended_;
  std::unique_ptr<GpuCallFailed> failure_;
  bool is_over_ = false;
  std::thread watcher_;
};

}  // namespace gallop::parallel
