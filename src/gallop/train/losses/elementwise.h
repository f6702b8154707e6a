#pragma once

#include <memory>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/train/losses/loss.h"

// Losses of each output x against a floating-point target y. A field "weight" of the batch, of the
// target's sizes or one number per sample, multiplies them. The count is the sum of the weights, as
// in torch.nn.functional.mse_loss, or without weights the number of targets.
namespace gallop::train {

struct MseConfig {};
void visit(config::Visitor& visitor, MseConfig& config);
/// (x - y)^2. torch.nn.MSELoss.
std::unique_ptr<Loss> make_mse(const MseConfig& config, const LossContext& context);

struct L1Config {};
void visit(config::Visitor& visitor, L1Config& config);
/// |x - y|. torch.nn.L1Loss.
std::unique_ptr<Loss> make_l1(const L1Config& config, const LossContext& context);

struct HuberConfig {
  double delta = 1;
};
void visit(config::Visitor& visitor, HuberConfig& config);
/// (x - y)^2 / 2 where |x - y| <= delta, else delta (|x - y| - delta / 2) (Huber, 1964).
/// torch.nn.HuberLoss.
std::unique_ptr<Loss> make_huber(const HuberConfig& config, const LossContext& context);

struct SmoothL1Config {
  double beta = 1;
};
void visit(config::Visitor& visitor, SmoothL1Config& config);
/// (x - y)^2 / (2 beta) where |x - y| < beta, else |x - y| - beta / 2 (Girshick, "Fast R-CNN",
/// 2015). torch.nn.SmoothL1Loss.
std::unique_ptr<Loss> make_smooth_l1(const SmoothL1Config& config, const LossContext& context);

struct QuantileConfig {
  std::vector<double> quantiles = {0.5};
};
void visit(config::Visitor& visitor, QuantileConfig& config);
/// max(q d, (q - 1) d) for d = y - x, the pinball loss (Koenker and Bassett, "Regression
/// quantiles", 1978). With several quantiles, a target has one output for each, of which the
/// nearest to the median predicts it, and the count is the number of outputs.
std::unique_ptr<Loss> make_quantile(const QuantileConfig& config, const LossContext& context);

struct PoissonNllConfig {
  bool log_input = true;
  bool full = false;
  double eps = 1e-8;
};
void visit(config::Visitor& visitor, PoissonNllConfig& config);
/// exp(x) - y x, or x - y log(x + eps) without log_input; full adds Stirling's approximation of
/// log(y!) for y > 1. torch.nn.PoissonNLLLoss.
std::unique_ptr<Loss> make_poisson_nll(const PoissonNllConfig& config, const LossContext& context);

struct GaussianNllConfig {
  bool full = false;
  double eps = 1e-6;
};
void visit(config::Visitor& visitor, GaussianNllConfig& config);
/// (log(v) + (x - y)^2 / v) / 2 of a mean x and a variance v, the exponential of a second output,
/// at least eps (Nix and Weigend, "Estimating the mean and variance of the target probability
/// distribution", 1994); full adds log(2 pi) / 2. torch.nn.GaussianNLLLoss.
std::unique_ptr<Loss> make_gaussian_nll(const GaussianNllConfig& config,
                                        const LossContext& context);

struct BceWithLogitsConfig {
  std::vector<double> pos_weight;  ///< Per element of the last dimension, or one; empty: 1.
};
void visit(config::Visitor& visitor, BceWithLogitsConfig& config);
/// -(p y log(s) + (1 - y) log(1 - s)) for s = sigmoid(x) and p = pos_weight.
/// torch.nn.BCEWithLogitsLoss.
std::unique_ptr<Loss> make_bce_with_logits(const BceWithLogitsConfig& config,
                                           const LossContext& context);

}  // namespace gallop::train
