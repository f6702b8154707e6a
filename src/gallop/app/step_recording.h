#pragma once

#include <optional>

#include "gallop/base/process_counters.h"
#include "gallop/base/trace.h"
#include "gallop/track/system/system_meter.h"

namespace gallop::app {

/// The spans of some steps.
struct RecordedSteps {
  Trace trace;
  /// Cores that other programs kept busy meanwhile, on average; 0 if it was too short to tell.
  double other_cores = 0;
  ProcessCounts counts;  ///< Of all threads, meanwhile.
};

/// Records the spans of all threads, what the kernel and the processor count, and how busy the
/// machine is meanwhile.
class StepRecording {
 public:
  /// `processes`: those that train on this machine, which are assumed to work equally.
  explicit StepRecording(int processes) : processes_(processes), meter_(processes) {}

  void start();
  bool is_running() const { return recorder_.has_value(); }
  /// Ends the recording; nothing of value if there is none.
  RecordedSteps stop();

 private:
  int processes_;
  std::optional<TraceRecorder> recorder_;
  std::optional<ProcessCounters> counters_;
  track::SystemMeter meter_;
};

}  // namespace gallop::app
