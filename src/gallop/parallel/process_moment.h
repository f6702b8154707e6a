#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gallop/launch/call_log.h"
#include "gallop/parallel/collectives.h"
#include "gallop/parallel/stall_monitor.h"

// Internal to parallel/c10d_collectives.cpp.
namespace gallop::parallel {

/// Where a process is and what it has recorded, which a group shares with its subgroups.
struct ProcessMoment {
  int rank = 0, size = 1;  ///< Among all processes, in messages.
  Section section = Section::kStart;
  int64_t step = 0;
  Limits limits;
  std::optional<launch::CallLog> log;
  std::optional<StallMonitor> stall_monitor;  ///< Of all processes.
  int64_t calls = 0;                          ///< Of all groups.

  /// "step 7", for messages.
  std::string place() const;
  /// The timeout of a collective.
  double limit_seconds() const;
  /// The timeout of a collective that waits for processes doing long work; see StallMonitor.
  double longest_limit_seconds() const;
};

}  // namespace gallop::parallel
