#include "gallop/train/step/config.h"

#include "gallop/base/error.h"

namespace gallop::train {

const char* name_of(ScheduledParameter value) {
  switch (value) {
    case ScheduledParameter::kLabelSmoothing: return "label_smoothing";
    case ScheduledParameter::kMomentum: return "momentum";
    case ScheduledParameter::kBeta2: return "beta2";
    case ScheduledParameter::kWeightDecay: return "weight_decay";
    case ScheduledParameter::kDropout: return "dropout";
  }
  throw InternalError("train step: a value without a name");
}

}  // namespace gallop::train
