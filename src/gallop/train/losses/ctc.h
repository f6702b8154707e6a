#pragma once

#include <cstdint>
#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

struct CtcConfig {
  int64_t blank = 0;
  bool zero_infinity = false;
};

void visit(config::Visitor& visitor, CtcConfig& config);

/// Minus the log-probability of a sequence of labels, summed over its alignments to the outputs
/// [N, T, C], divided by its length (Graves et al., "Connectionist temporal classification", ICML
/// 2006). Targets [N, S] end where data::kIgnoredTarget begins, or after the field
/// "target_lengths"; outputs after the field "input_lengths" of the batch, if it has them. The
/// count is the number of samples: torch.nn.CTCLoss of log_softmax. A target that fits no
/// alignment has an infinite loss, or with zero_infinity none.
std::unique_ptr<Loss> make_ctc(const CtcConfig& config, const LossContext& context);

}  // namespace gallop::train
