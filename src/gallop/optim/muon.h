#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/optim/groups.h"
#include "gallop/optim/optimizer.h"

namespace gallop::optim {

/// Muon (Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024), as in
/// PyTorch, for matrices and for convolutions' filters as matrices [outputs, rest]:
///
///     m = momentum * m + (1 - momentum) * g
///     u = nesterov ? momentum * m + (1 - momentum) * g : m
///     p = p - lr * weight_decay * p - lr * scale * orthogonal(u)
///
/// orthogonal() brings the singular values close to 1 with `ns_steps` Newton-Schulz iterations.
/// scale is sqrt(max(1, rows / columns)) for adjust_lr_fn "original", and 0.2 * sqrt(max(rows,
/// columns)), which matches the RMS of AdamW's updates (Liu et al., "Muon is scalable for LLM
/// training", 2025), for "match_rms_adamw".
///
/// Other parameters are updated by AdamW or SGD: one-dimensional ones, and the embeddings and
/// output layers that match `others`.
struct MuonConfig {
  double lr = 0.02;
  double momentum = 0.95;
  bool nesterov = true;
  int64_t ns_steps = 5;
  std::string ns_precision = "bf16";  ///< Or fp32.
  std::string adjust_lr_fn = "original";
  double weight_decay = 0.1;
  /// Glob patterns of matrices that Muon does not update; patterns may match nothing.
  std::vector<std::string> others = {
      "*embed*", "*wte*",       "*wpe*",   "*token*", "*lm_head*",  "*head.*",   "fc.*",
      "*head_*", "*.experts.*", "input.*", "*.bias",  "layers.*.r", "layers.*.s"};
  /// Glob patterns of matrices that Muon updates even if they match `others`.
  std::vector<std::string> matrices{};
  std::string other_optimizer = "adamw";  ///< Or sgd, with Nesterov's momentum of 0.9.
  double other_lr = 3e-4;                 ///< Used where Muon's is `lr`.
  double other_beta1 = 0.9;
  double other_beta2 = 0.95;
  double other_weight_decay = 0;
  GroupsConfig groups{};
};

void visit(config::Visitor& visitor, MuonConfig& config);

/// State: "momentum.NAME" (m) for each of Muon's parameters, then that of the other optimizer.
/// Throws UsageError for a pattern in `matrices` that matches a vector or nothing, and if Muon has
/// no parameter.
std::unique_ptr<Optimizer> make_muon(const MuonConfig& config, const NamedTensors& parameters);

}  // namespace gallop::optim
