#pragma once

#include <sys/types.h>

#include "gallop/base/file.h"

namespace gallop {

/// Kills a group of processes where this process dies before this object, however it dies. What
/// PR_SET_PDEATHSIG is for a child, this is for those that the child has started. It is a shell
/// that waits for what this process tells it.
class ProcessGroupReaper {
 public:
  /// Throws DeviceError where there is no shell.
  explicit ProcessGroupReaper(pid_t group);
  /// Lets the group be, whose number may be another's from then on.
  ~ProcessGroupReaper();
  ProcessGroupReaper(const ProcessGroupReaper&) = delete;
  ProcessGroupReaper& operator=(const ProcessGroupReaper&) = delete;

 private:
  FileDescriptor line_;
  pid_t id_ = -1;
};

}  // namespace gallop
