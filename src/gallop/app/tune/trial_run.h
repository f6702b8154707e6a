#pragma once

#include <functional>

#include "gallop/app/tune/trial_command.h"
#include "gallop/app/tune/trial_metrics.h"
#include "gallop/base/stop.h"
#include "gallop/tune/study_client.h"

namespace gallop::app {

/// Runs a trial in its own process, and reports its metrics and result. The output of the process
/// is appended to the trial's output file. A pruned or abandoned trial gets SIGTERM, upon which
/// training ends at a step boundary and saves, and SIGKILL after half a minute. After `stop`, the
/// trial is released. Throws the errors of the client, after ending the process.
void run_trial(tune::StudyClient& client, const tune::RunSpec& spec,
               const tune::Assignment& assignment, const TrialPlace& place,
               const TrialReports& reports, const StopRequest& stop);

}  // namespace gallop::app
