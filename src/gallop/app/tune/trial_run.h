#pragma once

#include <functional>

#include "gallop/app/tune/trial_command.h"
#include "gallop/app/tune/trial_metrics.h"
#include "gallop/base/stop.h"
#include "gallop/tune/study_client.h"

namespace gallop::app {

/// Runs a trial in a process of its own, whose metrics it reports and whose end it tells. All that
/// the process prints is added to the trial's file of output. A trial that is pruned or given up
/// gets SIGTERM, upon which training ends at a step boundary and saves, and SIGKILL if it does not
/// end within half a minute. Where `stop` is asked for, the trial is given back. Throws what the
/// broker throws; the process is ended before.
void run_trial(tune::StudyClient& client, const tune::RunSpec& spec,
               const tune::Assignment& assignment, const TrialPlace& place,
               const TrialReports& reports, const StopRequest& stop);

}  // namespace gallop::app
