#pragma once

#include "gallop/optim/optimizer.h"

namespace gallop::train {

/// While it lives, the model has the weights that the training is for.
class AveragedWeights {
 public:
  explicit AveragedWeights(optim::Optimizer& optimizer) : optimizer_(optimizer) {
    optimizer_.use_averaged_weights(true);
  }
  ~AveragedWeights() { optimizer_.use_averaged_weights(false); }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  optim::Optimizer& optimizer_;
};

}  // namespace gallop::train
