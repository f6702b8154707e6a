#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

struct KlDivergenceConfig {
  bool log_target = false;
};

void visit(config::Visitor& visitor, KlDivergenceConfig& config);

/// sum_c t_c (log(t_c) - log(softmax(x)_c)) for logits x and the probabilities t of each class, or
/// their logarithms. The count is the number of rows: torch.nn.KLDivLoss with
/// reduction="batchmean", of log_softmax(x).
std::unique_ptr<Loss> make_kl_divergence(const KlDivergenceConfig& config,
                                         const LossContext& context);

}  // namespace gallop::train
