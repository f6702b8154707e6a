#pragma once

#include "gallop/config/visitor.h"

namespace gallop::optim {

/// Options that several optimizers have.
inline const config::Field kLearningRate{.name = "lr",
                                         .help = "learning rate, which the schedule multiplies",
                                         .min = 0,
                                         .above_min = true};
inline const config::Field kWeightDecay{
    .name = "weight_decay", .help = "pull of every weight towards 0", .min = 0};
inline const config::Field kDecay1d{
    .name = "decay_1d", .help = "weight decay also on biases and norms (one dimension)"};

}  // namespace gallop::optim
