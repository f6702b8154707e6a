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
    throw UsageError(fmt::format(
        "optimizer.lr: auto finds a rate for the batch that is trained with, and "
        "optimizer.lr_scaling={} is for one that is known for another; leave one of them out",
        scaling.rule));
  }
  if (scaling.scales() && !scaling.batch) {
    throw UsageError(
        fmt::format("optimizer.lr_scaling={} needs to know which batch optimizer.lr is for; give "
                    "optimizer.lr_batch, for example 256",
                    scaling.rule));
  }
  if (!scaling.scales() && scaling.batch) {
    throw UsageError(
        "optimizer.lr_batch says which batch optimizer.lr is for, but optimizer.lr_scaling is "
        "none; make that linear or sqrt, or leave lr_batch out");
  }
}

}  // namespace gallop::schedule
