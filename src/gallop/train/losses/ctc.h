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

/// The negative log-probability of a sequence of labels, summed over its alignments to the outputs
/// [N, T, C], divided by its length (Graves et al., "Connectionist temporal classification", ICML
/// 2006). Targets [N, S] end at the first data::kIgnoredTarget, or by the field "target_lengths" of
/// the batch; outputs by its field "input_lengths", if any. The count is the number of samples:
/// torch.nn.CTCLoss of log_softmax. The loss of a target without an alignment is infinite, or 0
/// with zero_infinity.
std::unique_ptr<Loss> make_ctc(const CtcConfig& config, const LossContext& context);

}  // namespace gallop::train
