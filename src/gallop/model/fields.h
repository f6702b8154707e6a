#pragma once

#include "gallop/config/visitor.h"
#include "gallop/model/initializer.h"

namespace gallop::model {

/// Options that several models have.
inline const config::Field kHeads{
    .name = "heads", .help = "attention heads; must divide the width", .min = 1};
inline const config::Field kDropout{.name = "dropout",
                                    .help = "share of activations set to 0 in training",
                                    .min = 0,
                                    .max = 1,
                                    .below_max = true};
inline const config::Field kStochasticDepth{
    .name = "stochastic_depth",
    .help = "chance that a sample skips the last block in training; less for earlier blocks",
    .min = 0,
    .max = 1,
    .below_max = true};
inline const config::Field kBatchNormMomentum{.name = "batch_norm_momentum",
                                              .help = "share of a batch in the running statistics",
                                              .min = 0,
                                              .max = 1,
                                              .above_min = true};

inline config::Field conv_init_field() {
  return {.name = "conv_init",
          .help = "how weights of convolutions are drawn",
          .choices = init_names()};
}

}  // namespace gallop::model
