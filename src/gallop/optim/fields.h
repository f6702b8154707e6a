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

inline const config::Field kEps{
    .name = "eps", .help = "added to the divisor", .min = 0, .above_min = true};
inline const config::Field kBeta1{.name = "beta1",
                                  .help = "memory of the mean of the gradients",
                                  .min = 0,
                                  .max = 1,
                                  .below_max = true};
inline const config::Field kBeta2{.name = "beta2",
                                  .help = "memory of the mean of their squares",
                                  .min = 0,
                                  .max = 1,
                                  .below_max = true};
inline const config::Field kMomentum{.name = "momentum",
                                     .help = "share of the last update that is kept",
                                     .min = 0,
                                     .max = 1,
                                     .below_max = true};
inline const config::Field kDecoupledDecay{.name = "decoupled_weight_decay",
                                           .help = "weight decay apart from the gradient"};
inline const config::Field kAlwaysAdapt{
    .name = "always_adapt", .help = "a trust ratio also for parameters without weight decay"};

}  // namespace gallop::optim
