#pragma once

#include <sys/types.h>

#include "gallop/base/file.h"

namespace gallop {

/// Kills a process group if this process dies before this object, for whatever reason: the
/// equivalent of PR_SET_PDEATHSIG for grandchildren. Implemented by a shell that waits for this
/// process.
class ProcessGroupReaper {
 public:
  /// Throws DeviceError if there is no shell.
  explicit ProcessGroupReaper(pid_t group);
  /// Releases the group, whose id may be reused afterwards.
  ~ProcessGroupReaper();
  ProcessGroupReaper(const ProcessGroupReaper&) = delete;
  ProcessGroupReaper& operator=(const ProcessGroupReaper&) = delete;

 private:
  FileDescriptor line_;
  pid_t id_ = -1;
};

}  // namespace gallop
