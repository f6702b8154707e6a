#pragma once

#include "gallop/config/visitor.h"
#include "gallop/optim/groups.h"

namespace gallop::optim {

/// A share, or a memory: from 0 on, below 1.
inline config::Field share_field(const char* name, const char* help) {
  return {.name = name, .help = help, .min = 0, .max = 1, .below_max = true};
}

/// Options that several optimizers have.
inline const config::Field kLearningRate{.name = "lr",
                                         .help = "learning rate, which the schedule multiplies",
                                         .min = 0,
                                         .above_min = true,
                                         .or_auto = true};
inline const config::Field kWeightDecay{
    .name = "weight_decay", .help = "pull of every weight towards 0", .min = 0};
inline const config::Field kDecay1d{
    .name = "decay_1d", .help = "weight decay also on biases and norms (one dimension)"};

inline const config::Field kEps{
    .name = "eps", .help = "added to the divisor", .min = 0, .above_min = true};
inline const config::Field kBeta1 = share_field("beta1", "memory of the mean of the gradients");
inline const config::Field kBeta2 = share_field("beta2", "memory of the mean of their squares");
inline const config::Field kMomentum =
    share_field("momentum", "share of the last update that is kept");
inline const config::Field kNesterov{.name = "nesterov", .help = "look ahead along the momentum"};
inline const config::Field kDecoupledDecay{.name = "decoupled_weight_decay",
                                           .help = "weight decay apart from the gradient"};
/// Block-wise dynamic quantization (Dettmers et al., "8-bit optimizers via block-wise
/// quantization", ICLR 2022) of parameters of at least 4096 numbers.
inline const config::Field kStateBits{
    .name = "state_bits", .help = "of each number that is kept", .choices = {"32", "8"}};
inline const config::Field kRounding{
    .name = "rounding",
    .help =
        "of weights kept in bf16 (train.precision=bf16-weights): stochastic, to the nearest "
        "with what is lost kept for the next update (kahan), or to the nearest alone; auto: "
        "stochastic",
    .choices = {"auto", "stochastic", "kahan", "nearest"}};
inline const config::Field kAlwaysAdapt{
    .name = "always_adapt", .help = "a trust ratio also for parameters without weight decay"};

/// What the options of nearly every optimizer end with.
template <typename Config>
void visit_decay(config::Visitor& visitor, Config& config) {
  if constexpr (requires { config.rounding; }) visitor.field(kRounding, config.rounding);
  visitor.field(kWeightDecay, config.weight_decay);
  visitor.field(kDecay1d, config.decay_1d);
  visit_groups(visitor, config.groups);
}

}  // namespace gallop::optim
