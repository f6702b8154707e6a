#pragma once

#include "gallop/config/visitor.h"
#include "gallop/model/initializer.h"

namespace gallop::model {

/// Options shared by several models.
inline const config::Field kHeads{
    .name = "heads", .help = "attention heads; must divide the width", .min = 1};
inline const config::Field kPatch{
    .name = "patch", .help = "side length of a patch in pixels", .min = 1};
inline const config::Field kDropout{
    .name = "dropout", .help = "dropout probability", .min = 0, .max = 1, .below_max = true};
inline const config::Field kStochasticDepth{.name = "stochastic_depth",
                                            .help =
                                                "stochastic depth: probability of dropping the "
                                                "last block; linearly smaller for earlier blocks",
                                            .min = 0,
                                            .max = 1,
                                            .below_max = true};
inline const config::Field kBatchNormMomentum{
    .name = "batch_norm_momentum",
    .help = "momentum of the running statistics: weight of the new batch",
    .min = 0,
    .max = 1,
    .above_min = true};

inline config::Field patch_init_field() {
  return {.name = "conv_init",
          .help = "weight initialization of the patch embedding",
          .choices = init_names()};
}

inline config::Field conv_init_field() {
  return {.name = "conv_init",
          .help = "weight initialization of convolutions",
          .choices = init_names()};
}

}  // namespace gallop::model
