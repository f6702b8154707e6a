#include "gallop/app/trainer_parts.h"

namespace gallop::app {

train::TrainerParts trainer_parts(Session& session, train::CheckpointStore& checkpoints,
                                  const StopRequest& stop) {
  return {.model = session.model(),
          .optimizer = session.optimizer(),
          .schedule = session.schedule(),
          .lr_factor = session.lr_factor(),
          .scheduled = session.scheduled(),
          .train_samples = *session.data().train,
          .evaluation_samples = session.data().evaluation(),
          .checkpoints = checkpoints,
          .stop = stop,
          .teacher = session.teacher()};
}

}  // namespace gallop::app
