#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "gallop/base/stop.h"
#include "gallop/launch/group.h"

namespace gallop::launch {

/// A group of processes that runs while this thread does other things.
class GroupThread {
 public:
  /// Calls `run` in a thread of its own; it ends soon where the request asks, and at once where
  /// that is by SIGKILL, as run_group() does. An Error that it throws is the end of the group.
  explicit GroupThread(std::function<GroupEnd(const StopRequest&)> run);
  /// Kills what still runs.
  ~GroupThread();
  GroupThread(const GroupThread&) = delete;
  GroupThread& operator=(const GroupThread&) = delete;

  /// Asks for the end, and for it at once after so many seconds; of several times the earliest
  /// counts.
  void stop(double grace_seconds);
  /// How it ended, if it has. To be called again and again, as it looks at the time.
  std::optional<GroupEnd> end();

 private:
  StopRequest stop_;
  std::optional<double> kill_at_;
  std::atomic<bool> has_ended_{false};
  GroupEnd end_;
  std::thread thread_;
};

}  // namespace gallop::launch
