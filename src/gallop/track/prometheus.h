#pragma once

#include <string>
#include <vector>

#include "gallop/track/run_summary.h"

namespace gallop::track {

/// How runs stand, as Prometheus reads it (text format 0.0.4): their steps, seconds and states, and
/// the last value of each metric.
std::string prometheus_text(const std::vector<RunSummary>& runs);

}  // namespace gallop::track
