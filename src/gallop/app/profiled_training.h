#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/advise/facts.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/session.h"
#include "gallop/base/stop.h"
#include "gallop/base/trace.h"
#include "gallop/profile/profile.h"

namespace gallop::app {

/// The profiled steps of a training.
struct ProfiledTraining {
  Trace trace;
  profile::Graphs graphs;
  advise::Facts facts;  ///< Without trials.
};

/// Trains the first steps of a session, of which those after `warm_up` are profiled. Its folder is
/// a temporary one, and all processes of `context` call this together. Returns nothing of value if
/// `stop` is requested. Throws UsageError if the training has no step after the warm-up.
ProfiledTraining profile_training(Session& session, int64_t warm_up, int64_t steps,
                                  const DistributedContext& context, const StopRequest& stop);

}  // namespace gallop::app
