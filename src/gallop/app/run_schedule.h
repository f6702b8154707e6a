#pragma once

#include "gallop/app/session.h"
#include "gallop/track/run_schedule.h"

namespace gallop::app {

/// The learning rate and all scheduled parameters at some hundred steps of a new training, exactly
/// as in its steps, unless updates are skipped.
track::RunSchedule run_schedule(Session& session);

}  // namespace gallop::app
