#pragma once

#include <cstddef>
#include <string>

#include "gallop/base/trace.h"
#include "gallop/profile/profile.h"

namespace gallop::profile {

/// Where a trace was recorded.
struct TraceOrigin {
  int rank = 0, processes = 1;
  std::string backend;  ///< "gloo", "nccl"; empty for one process.
  std::string host;
};

/// The trace without its first steps, so that it has at most so many spans where its last step
/// alone has no more.
Trace last_steps(Trace trace, size_t most_spans);

/// The trace in the Chrome trace event format, as PyTorch's profiler writes it, so that Perfetto,
/// chrome://tracing and HolisticTraceAnalysis read it: steps are "ProfilerStep#N", waits for data
/// "enumerate(DataLoader)#Loader.__next__", operators of category "cpu_op". What compiled steps
/// hold in memory is the counter "memory", in bytes, with an event for each change.
std::string chrome_trace(const Trace& trace, const Graphs& graphs, const StepMemory& memory,
                         const TraceOrigin& origin);

}  // namespace gallop::profile
