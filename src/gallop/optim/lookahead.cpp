#include "gallop/optim/lookahead.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/optim/optimizer_parameters.h"
#include "gallop/optim/second_weights.h"

namespace gallop::optim {

namespace {

class Lookahead final : public WrappingOptimizer {
 public:
  using WrappingOptimizer::WrappingOptimizer;

  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale, const at::Tensor& found_inf,
                  const ScheduledOptions& scheduled) override {
    at::Tensor norm = inner().step(lr, grad_scale, found_inf, scheduled);
    second().update(found_inf, /*both=*/true);
    return norm;
  }
};

}  // namespace

void visit(config::Visitor& visitor, LookaheadConfig& config) {
  visitor.field({.name = "k", .help = "updates between two steps of the slow weights", .min = 1},
                config.k);
  visitor.field({.name = "alpha",
                 .help = "step size of the slow weights",
                 .min = 0,
                 .max = 1,
                 .above_min = true},
                config.alpha);
  visitor.field({.name = "power",
                 .help = "if above 0, the slow weights' step size falls from 1 to alpha with this "
                         "power of the progress; often 3",
                 .min = 0},
                config.power);
}

std::unique_ptr<Optimizer> make_lookahead(const LookaheadConfig& config, Wrapped wrapped) {
  switch (wrapped.optimizer->averaging().kind) {
    case Averaging::Kind::kNone: break;
    case Averaging::Kind::kBeside:
      throw UsageError(
          "optimizer.wrappers: lookahead cannot wrap an average, which would miss its steps; put "
          "lookahead "
          "first in the list");
    case Averaging::Kind::kWithin:
      throw UsageError(
          "optimizer.wrappers: lookahead cannot wrap a schedule-free optimizer, whose average "
          "depends on "
          "every step of the weights");
  }
  if (has_bf16(wrapped.parameters)) {
    throw UsageError(
        "optimizer.wrappers: lookahead is not supported with train.precision=bf16-weights: slow "
        "weights copied to "
        "the fast ones are rounded to bf16 and stagnate; set precision to bf16, "
        "or use ema or swa");
  }
  first_step("lookahead", "0", config.k, wrapped.length);
  kernel::AverageRule rule{
      .kind = kernel::AverageRule::Kind::kShare, .number = config.alpha, .every = config.k};
  if (config.power > 0) {
    rule.power = config.power;
    rule.length = wrapped.length.steps_of("1");
  }
  return std::make_unique<Lookahead>(
      std::move(wrapped.optimizer),
      SecondWeights("lookahead", "slow", std::move(wrapped.parameters), rule));
}

}  // namespace gallop::optim
