#pragma once

#include "gallop/app/session.h"
#include "gallop/base/stop.h"
#include "gallop/train/trainer.h"

namespace gallop::app {

/// What a trainer takes from a session; all arguments must outlive it.
train::TrainerParts trainer_parts(Session& session, train::CheckpointStore& checkpoints,
                                  const StopRequest& stop);

}  // namespace gallop::app
