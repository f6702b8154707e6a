#include "gallop/train/spike_watch.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "gallop/base/error.h"

namespace gallop::train {

void visit(config::Visitor& v, SpikeConfig& c) {
  v.field({.name = "action",
           .help = "reaction to a loss spike: none, skip the update, or rewind to the weights of "
                   "the last checkpoint",
           .choices = {"none", "skip", "rewind"}},
          c.action);
  v.field({.name = "threshold",
           .help = "standard deviations above the mean at which a loss is a spike",
           .min = 0,
           .above_min = true},
          c.threshold);
  v.field({.name = "window",
           .help = "steps over which the mean and standard deviation are computed",
           .min = 2},
          c.window);
  v.field({.name = "limit",
           .help = "consecutive skips, or rewinds in a run, that are tolerated",
           .min = 1},
          c.limit);
}

void check(const SpikeConfig& config) {
  const SpikeConfig defaults;
  if (config.action != "none" ||
      (config.threshold == defaults.threshold && config.window == defaults.window &&
       config.limit == defaults.limit)) {
    return;
  }
  throw UsageError(
      "train.spikes has a threshold, a window or a limit, but its action is none; set it to skip "
      "or rewind");
}

SpikeWatch::SpikeWatch(const SpikeConfig& config, at::Device device)
    : threshold_(config.threshold),
      window_(static_cast<double>(config.window)),
      mean_(at::zeros({}, at::TensorOptions(at::kDouble).device(device))),
      variance_(at::zeros_like(mean_)),
      count_(at::zeros_like(mean_)) {}

at::Tensor SpikeWatch::note(const at::Tensor& loss) {
  const at::Tensor distance = loss.sub(mean_);
  const at::Tensor spike =
      distance.gt(variance_.sqrt().mul(threshold_)).logical_and(count_.ge(window_));
  const at::Tensor taken = at::isfinite(loss).logical_and(spike.logical_not());
  const at::Tensor share = count_.add(1).reciprocal().clamp_min(1 / window_);
  const at::Tensor mean = mean_.add(share.mul(distance));
  const at::Tensor variance =
      share.mul(distance).mul(distance).add(variance_).mul(share.neg().add(1));
  mean_.copy_(at::where(taken, mean, mean_));
  variance_.copy_(at::where(taken, variance, variance_));
  count_.copy_(count_.add(taken.to(at::kDouble)));
  return spike.to(at::kDouble);
}

NamedTensors SpikeWatch::state() const {
  return {{"spikes.mean", mean_}, {"spikes.variance", variance_}, {"spikes.count", count_}};
}

}  // namespace gallop::train
