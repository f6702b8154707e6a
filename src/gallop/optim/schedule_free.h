#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/optim/groups.h"
#include "gallop/optim/optimizer.h"

namespace gallop::optim {

/// Schedule-free SGD (Defazio et al., "The road less scheduled", NeurIPS 2024), which averages the
/// weights instead of decaying the learning rate: use a constant schedule, optionally with warm-up.
/// The model trains at y; x, which use_averaged_weights() swaps in, is evaluated and saved. With t
/// counted from 1:
///
///     w = t^r * (largest lr so far)^weight_lr_power,  c = w / (sum of all w)
///     d = gradient at y + weight_decay * y
///     y = y + c * (z - y) - lr * (1 - momentum * (1 - c)) * d,  z = z - lr * d
///     x = y + (1 - 1 / momentum) * (z - y)
struct ScheduleFreeSgdConfig {
  double lr = 1;
  double momentum = 0.9;  ///< Above 0.
  double r = 0;
  double weight_lr_power = 2;
  double weight_decay = 0;
  bool decay_1d = true;
  GroupsConfig groups{};
};

/// The same for AdamW: beta1 is the momentum, and with v as in Adam
///
///     d = gradient / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * y
struct ScheduleFreeAdamwConfig {
  double lr = 2.5e-3;
  double beta1 = 0.9;  ///< Above 0.
  double beta2 = 0.999;
  double eps = 1e-8;
  double r = 0;
  double weight_lr_power = 2;
  double weight_decay = 0;
  bool decay_1d = true;
  GroupsConfig groups{};
};

void visit(config::Visitor& visitor, ScheduleFreeSgdConfig& config);
void visit(config::Visitor& visitor, ScheduleFreeAdamwConfig& config);

/// State: "z.NAME" for each parameter, for AdamW also "exp_avg_sq.NAME", then "step" and "running",
/// fp64 [parameters, 2]: the sum of w and the largest lr. While averaged weights are in use, also
/// "training.NAME" (y): a checkpoint taken then has x as the model and resumes bit-identically.
std::unique_ptr<Optimizer> make_schedule_free_sgd(const ScheduleFreeSgdConfig& config,
                                                  const NamedTensors& parameters);
std::unique_ptr<Optimizer> make_schedule_free_adamw(const ScheduleFreeAdamwConfig& config,
                                                    const NamedTensors& parameters);

}  // namespace gallop::optim
