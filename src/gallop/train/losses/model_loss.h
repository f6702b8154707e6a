#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

struct ModelLossConfig {};
void visit(config::Visitor& visitor, ModelLossConfig& config);

/// The loss that the model computes itself, model::Output::loss. As only its mean over a batch is
/// known, a batch cannot be computed in parts. Its count is the number of samples. sum() throws
/// UsageError if the model computes none.
std::unique_ptr<Loss> make_model_loss(const ModelLossConfig& config, const LossContext& context);

}  // namespace gallop::train
