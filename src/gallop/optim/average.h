#pragma once

#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/optim/wrapper.h"

namespace gallop::optim {

/// An exponential moving average of the weights beside any optimizer (Polyak and Juditsky,
/// "Acceleration of stochastic approximation by averaging", SIAM 1992), as in PyTorch's
/// AveragedModel with get_ema_multi_avg_fn. After every so many updates, with n how often before:
///
///     a = d * a + (1 - d) * p,   d = warmup ? min(decay, (1 + n) / (10 + n)) : decay
///
/// The first time a = p. Statistics of batch norm are averaged in the same way, as timm and
/// torchvision do it: then a fits them at every moment, at no further cost.
struct EmaConfig {
  double decay = 0.999;
  bool warmup = true;
  int64_t every = 1;        ///< Updates from one time to the next.
  std::string start = "0";  ///< When it begins.
};

/// Stochastic weight averaging (Izmailov et al., "Averaging weights leads to wider optima and
/// better generalization", UAI 2018), as in PyTorch's AveragedModel: the plain mean of the weights
/// at `start` and every so often after it. Statistics of batch norm are averaged too, and with
/// `batch_norm` "recompute" taken again at the end of the run, in one pass over the training data.
struct SwaConfig {
  std::string start = "0.75";
  std::string every = "1 epoch";
  std::string batch_norm = "recompute";  ///< Or average.
};

void visit(config::Visitor& visitor, EmaConfig& config);
void visit(config::Visitor& visitor, SwaConfig& config);

/// State: that of the optimizer, "ema.counts" (or "swa.counts"), fp64 [2], updates and how many of
/// them were averaged, and for each parameter and buffer "ema.average.NAME"; while averaged weights
/// are in use "ema.training.NAME", which is what is trained.
/// Throws UsageError around an optimizer that has an average already, and where the run ends before
/// anything is averaged.
std::unique_ptr<Optimizer> make_ema(const EmaConfig& config, Wrapped wrapped);
std::unique_ptr<Optimizer> make_swa(const SwaConfig& config, Wrapped wrapped);

}  // namespace gallop::optim
