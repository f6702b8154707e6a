#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/data/batch_transform.h"

namespace gallop::data {

/// timm's `Mixup` with its arguments and defaults: MixUp or CutMix, or for each batch, pair or
/// sample one of both.
struct TimmMixupConfig {
  double mixup_alpha = 1;
  double cutmix_alpha = 0;
  std::vector<double> cutmix_minmax;
  double prob = 1;
  double switch_prob = 0.5;
  std::string mode = "batch";
};

void visit(config::Visitor& visitor, TimmMixupConfig& config);

/// Throws UsageError if both are off, or if cutmix_minmax is no range.
std::unique_ptr<BatchTransform> make_timm_mixup(const TimmMixupConfig& config);

}  // namespace gallop::data
