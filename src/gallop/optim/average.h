#pragma once

#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/optim/wrapper.h"

namespace gallop::optim {

/// An exponential moving average of the weights around any optimizer (Polyak and Juditsky,
/// "Acceleration of stochastic approximation by averaging", SIAM 1992), as in PyTorch's
/// AveragedModel with get_ema_multi_avg_fn. Every `every` updates, with n the number of earlier
/// averaging steps:
///
///     a = d * a + (1 - d) * p,   d = warmup ? min(decay, (1 + n) / (10 + n)) : decay
///
/// At the first step a = p. Batch norm statistics are averaged in the same way, as in timm and
/// torchvision, so that they match a at any time, at no extra cost.
struct EmaConfig {
  double decay = 0.999;
  bool warmup = true;
  int64_t every = 1;        ///< Updates between averaging steps.
  std::string start = "0";  ///< When averaging starts.
};

/// Stochastic weight averaging (Izmailov et al., "Averaging weights leads to wider optima and
/// better generalization", UAI 2018), as in PyTorch's AveragedModel: the mean of the weights at
/// `start` and at regular intervals after it. Batch norm statistics are averaged as well, or with
/// `batch_norm` "recompute" recomputed at the end of the run, in one pass over the training data.
struct SwaConfig {
  std::string start = "0.75";
  std::string every = "1 epoch";
  std::string batch_norm = "recompute";  ///< Or "average".
};

void visit(config::Visitor& visitor, EmaConfig& config);
void visit(config::Visitor& visitor, SwaConfig& config);

/// State: that of the optimizer, "ema.counts" (or "swa.counts"), fp64 [2] (updates and averaging
/// steps), and for each parameter and buffer "ema.average.NAME"; while averaged weights are in use,
/// "ema.training.NAME" are the weights being trained. Throws UsageError around an optimizer that
/// already averages, and if the run ends before the first averaging step.
std::unique_ptr<Optimizer> make_ema(const EmaConfig& config, Wrapped wrapped);
std::unique_ptr<Optimizer> make_swa(const SwaConfig& config, Wrapped wrapped);

/// The model's tensor of which a tensor of an optimizer's state is a second copy, such as that of
/// "ema.average.NAME", "lookahead.slow.NAME" or "z.NAME" of schedule-free optimizers; empty if it
/// is none.
std::string tensor_copied_by(const std::string& state_name);

}  // namespace gallop::optim
