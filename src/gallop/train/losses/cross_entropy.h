#pragma once

#include <cstdint>
#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/train/losses/class_weights.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

struct CrossEntropyConfig {
  ClassWeightsConfig classes;
  double label_smoothing = 0;
  int64_t ignore_index = data::kIgnoredTarget;
  double logit_adjustment = 0;
};

void visit(config::Visitor& visitor, CrossEntropyConfig& config);

/// -sum_c t_c w_c log(softmax(x)_c) for logits x, weights w and the label's one-hot row t, which
/// label smoothing e changes to (1 - e) t + e / C (Szegedy et al., "Rethinking the Inception
/// architecture", 2016). Labels are classes, int64 [N], or soft labels [N, C]. As in
/// torch.nn.CrossEntropyLoss, the count is the sum of the labels' class weights, or the number of
/// rows of soft labels. With logit adjustment a, the logits of class c are increased by a times the
/// logarithm of its share of the training samples (Menon et al., "Long-tail learning via logit
/// adjustment", 2021). Without it and class weights, the model's last GEMM is fused into the kernel
/// (model::functional::cross_entropy).
std::unique_ptr<Loss> make_cross_entropy(const CrossEntropyConfig& config,
                                         const LossContext& context);

}  // namespace gallop::train
