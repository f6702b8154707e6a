#include "gallop/schedule/lr_scaling.h"

#include <cmath>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::schedule {

double LrScaling::factor(int64_t samples) const {
  if (!scales()) return 1;
  const double ratio = static_cast<double>(samples) / static_cast<double>(*batch);
  return rule == "sqrt" ? std::sqrt(ratio) : ratio;
}

void visit_lr_scaling(config::Visitor& visitor, LrScaling& scaling) {
  visitor.field({.name = "lr_scaling",
                 .help = "scaling of lr with data.batch_size relative to lr_batch: linear, by the "
                         "square root, or none",
                 .choices = {"none", "linear", "sqrt"}},
                scaling.rule);
  visitor.field(
      {.name = "lr_batch", .help = "reference batch size of lr, for lr_scaling", .min = 1},
      scaling.batch);
}

void check(const LrScaling& scaling, bool lr_is_auto) {
  if (scaling.scales() && lr_is_auto) {
    throw UsageError(
        fmt::format("optimizer.lr: auto already finds a learning rate for this batch size, so "
                    "optimizer.lr_scaling={} does not apply; remove one of them",
                    scaling.rule));
  }
  if (scaling.scales() && !scaling.batch) {
    throw UsageError(fmt::format(
        "optimizer.lr_scaling={} requires the reference batch size of optimizer.lr; set "
        "optimizer.lr_batch, for example 256",
        scaling.rule));
  }
  if (!scaling.scales() && scaling.batch) {
    throw UsageError(
        "optimizer.lr_batch has no effect, as optimizer.lr_scaling is "
        "none; set that to linear or sqrt, or remove lr_batch");
  }
}

}  // namespace gallop::schedule
