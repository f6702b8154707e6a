#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/app/distributed_context.h"
#include "gallop/base/trace.h"
#include "gallop/profile/chrome_trace.h"
#include "gallop/profile/profile.h"

namespace gallop::app {

/// What each process contributes to a profile.
struct RankReport {
  profile::RankTime time;
  std::string trace;  ///< In the Chrome trace event format, compressed by gzip.
};

/// Where this process's trace comes from.
profile::TraceOrigin origin_of(const DistributedContext& context, const std::string& host);

/// The report of this process. A trace with very many spans is limited to its last steps.
RankReport report_of(const DistributedContext& context, const std::string& host, Trace trace,
                     const profile::Graphs& graphs, const profile::Profile& profile);

/// The reports of all processes, by rank and compared with each other. All processes call this
/// after the same step; a single one gets its own.
std::vector<RankReport> gather_reports(const DistributedContext& context, RankReport own,
                                       int64_t step);

/// The times of several processes; nothing for a single one.
std::vector<profile::RankTime> times_of(const std::vector<RankReport>& reports);

}  // namespace gallop::app
