#pragma once

#include "gallop/config/visitor.h"

namespace gallop::model {

/// Options that several models have.
inline const config::Field kHeads{
    .name = "heads", .help = "attention heads; must divide the width", .min = 1};
inline const config::Field kDropout{.name = "dropout",
                                    .help = "share of activations set to 0 in training",
                                    .min = 0,
                                    .max = 1,
                                    .below_max = true};
inline const config::Field kBatchNormMomentum{.name = "batch_norm_momentum",
                                              .help = "share of a batch in the running statistics",
                                              .min = 0,
                                              .max = 1,
                                              .above_min = true};

}  // namespace gallop::model
