#include "gallop/launch/group_thread.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "gallop/base/clock.h"

namespace gallop::launch {

GroupThread::GroupThread(std::function<GroupEnd(const StopRequest&)> run)
    : thread_([this, run = std::move(run)] {
        try {
          end_ = run(stop_);
        } catch (const Error& error) {
          end_ = {.code = error.code(), .first_failure = error.what()};
        }
        has_ended_.store(true);
      }) {}

GroupThread::~GroupThread() {
  stop_.request(SIGKILL);
  thread_.join();
}

void GroupThread::stop(double grace_seconds) {
  const double kill_at = monotonic_seconds() + grace_seconds;
  kill_at_ = kill_at_ ? std::min(*kill_at_, kill_at) : kill_at;
  if (!stop_.requested()) stop_.request(SIGTERM);
}

std::optional<GroupEnd> GroupThread::end() {
  if (kill_at_ && monotonic_seconds() > *kill_at_) stop_.request(SIGKILL);
  if (!has_ended_.load()) return std::nullopt;
  return end_;
}

}  // namespace gallop::launch
