#pragma once

#include <string>
#include <vector>

#include "gallop/track/run_summary.h"

namespace gallop::track {

/// The state of runs in the Prometheus text format 0.0.4: steps, seconds, states, and the last
/// value of each metric.
std::string prometheus_text(const std::vector<RunSummary>& runs);

}  // namespace gallop::track
