#pragma once

#include "gallop/optim/optimizer.h"

namespace gallop::train {

/// While it lives, the model has the averaged weights of the optimizer, if it keeps an average.
class AveragedWeights {
 public:
  explicit AveragedWeights(optim::Optimizer& optimizer) : optimizer_(optimizer) {
    optimizer_.use_averaged_weights(true);
  }
  // Processes may exchange parameters, and notice that one is gone.
  ~AveragedWeights() noexcept(false) { optimizer_.use_averaged_weights(false); }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  optim::Optimizer& optimizer_;
};

}  // namespace gallop::train
