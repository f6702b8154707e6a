#pragma once

#include <cstdint>
#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

struct CtcConfig {
  int64_t blank = -1;  ///< -1: LossContext::blank.
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

/// Greedy decoding: the most likely class of each step of outputs [N, T, C], without repetitions
/// and blanks. Returns int64 [N, T] on the CPU, padded by data::kIgnoredTarget. `input_lengths`
/// [N], if defined: the number of steps of each sample. Throws UsageError if one is larger than T.
at::Tensor greedy_decode(const at::Tensor& outputs, int64_t blank,
                         const at::Tensor& input_lengths = {});

}  // namespace gallop::train
