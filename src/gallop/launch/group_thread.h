#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "gallop/base/stop.h"
#include "gallop/launch/group.h"

namespace gallop::launch {

/// Runs a process group in a background thread.
class GroupThread {
 public:
  /// Runs `run` in a new thread; it must end soon after a stop request, and at once after one by
  /// SIGKILL, as run_group() does. An Error that it throws becomes the result.
  explicit GroupThread(std::function<GroupEnd(const StopRequest&)> run);
  /// Kills running processes.
  ~GroupThread();
  GroupThread(const GroupThread&) = delete;
  GroupThread& operator=(const GroupThread&) = delete;

  /// Requests a stop, and a kill after this many seconds; of several requests, the earliest
  /// deadline applies.
  void stop(double grace_seconds);
  /// The result, once the group has ended. Must be polled, as it also checks the deadline.
  std::optional<GroupEnd> end();

 private:
  StopRequest stop_;
  std::optional<double> kill_at_;
  std::atomic<bool> has_ended_{false};
  GroupEnd end_;
  std::thread thread_;
};

}  // namespace gallop::launch
