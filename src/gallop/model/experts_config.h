#pragma once

#include <cstdint>
#include <string>

#include "gallop/config/visitor.h"

namespace gallop::model {

/// Options of a model whose feed-forward layers are mixtures of experts.
struct ExpertsConfig {
  int64_t num_experts = 0;     ///< 0: one feed-forward network for all tokens.
  int64_t top_k = 2;           ///< Experts that a token is sent to.
  double capacity_factor = 0;  ///< 0: no token is dropped.
  std::string load_balancing = "seq-aux-loss";
  double aux_loss_coef = 0.01;
  double z_loss_coef = 0;
  double bias_update_rate = 0.001;
};

void visit(config::Visitor& visitor, ExpertsConfig& config);
/// Throws UsageError if options contradict each other; `model` is named in the message.
void check(const ExpertsConfig& config, const std::string& model);
/// Whether routers have a loss.
bool has_loss(const ExpertsConfig& config);

}  // namespace gallop::model
