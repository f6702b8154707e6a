#pragma once

#include "gallop/config/visitor.h"
#include "gallop/optim/groups.h"

namespace gallop::optim {

/// A decay rate or fraction in [0, 1).
inline config::Field share_field(const char* name, const char* help) {
  return {.name = name, .help = help, .min = 0, .max = 1, .below_max = true};
}

/// Options common to several optimizers.
inline const config::Field kLearningRate{
    .name = "lr",
    .help = "base learning rate, multiplied by the schedule's factor",
    .min = 0,
    .above_min = true,
    .or_auto = true};
inline const config::Field kWeightDecay{
    .name = "weight_decay", .help = "weight decay coefficient (L2)", .min = 0};
inline const config::Field kDecay1d{
    .name = "decay_1d",
    .help = "apply weight decay to one-dimensional parameters (biases and norms), too"};

inline const config::Field kEps{
    .name = "eps", .help = "epsilon in the denominator", .min = 0, .above_min = true};
inline const config::Field kBeta1 = share_field("beta1", "decay rate of the first moment");
inline const config::Field kBeta2 = share_field("beta2", "decay rate of the second moment");
inline const config::Field kMomentum = share_field("momentum", "momentum factor");
inline const config::Field kNesterov{.name = "nesterov", .help = "Nesterov momentum"};
inline const config::Field kDecoupledDecay{
    .name = "decoupled_weight_decay",
    .help = "decouple weight decay from the gradient (as AdamW does)"};
/// Block-wise dynamic quantization (Dettmers et al., "8-bit optimizers via block-wise
/// quantization", ICLR 2022) of parameters with at least 4096 elements.
inline const config::Field kStateBits{.name = "state_bits",
                                      .help = "bits per element of the optimizer states",
                                      .choices = {"32", "8"}};
inline const config::Field kRounding{
    .name = "rounding",
    .help =
        "rounding of bf16 weights (train.precision=bf16-weights): stochastic, to nearest with "
        "Kahan compensation, or to nearest; auto: stochastic",
    .choices = {"auto", "stochastic", "kahan", "nearest"}};
inline const config::Field kAlwaysAdapt{
    .name = "always_adapt",
    .help = "apply the trust ratio to parameters without weight decay, too"};

/// The last options of nearly every optimizer.
template <typename Config>
void visit_decay(config::Visitor& visitor, Config& config) {
  if constexpr (requires { config.rounding; }) visitor.field(kRounding, config.rounding);
  visitor.field(kWeightDecay, config.weight_decay);
  visitor.field(kDecay1d, config.decay_1d);
  visit_groups(visitor, config.groups);
}

}  // namespace gallop::optim
