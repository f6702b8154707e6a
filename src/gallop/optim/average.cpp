#include "gallop/optim/average.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/optim/fields.h"
#include "gallop/optim/second_weights.h"

namespace gallop::optim {

namespace {

using Kind = Averaging::Kind;

class Averaged final : public WrappingOptimizer {
 public:
  Averaged(std::unique_ptr<Optimizer> inner, SecondWeights average, bool recompute_statistics)
      : WrappingOptimizer(std::move(inner), std::move(average)),
        recompute_statistics_(recompute_statistics) {}

  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale, const at::Tensor& found_inf,
                  const ScheduledOptions& scheduled) override {
    at::Tensor norm = inner().step(lr, grad_scale, found_inf, scheduled);
    second().update(found_inf, /*both=*/false);
    return norm;
  }

  Averaging averaging() const override {
    return {.kind = Kind::kBeside, .recompute_statistics = recompute_statistics_};
  }

 private:
  bool recompute_statistics_;
};

std::unique_ptr<Optimizer> make_average(const char* name, Wrapped wrapped,
                                        const kernel::AverageRule& rule, bool recompute) {
  const Kind kind = wrapped.optimizer->averaging().kind;
  if (kind != Kind::kNone) {
    throw UsageError(
        fmt::format("optimizer.wrappers: {} around {}: weights can be averaged only once", name,
                    kind == Kind::kWithin ? "a schedule-free optimizer, which averages them itself"
                                          : "another average"));
  }
  NamedTensors all = std::move(wrapped.parameters);
  all.insert(all.end(), wrapped.buffers.begin(), wrapped.buffers.end());
  return std::make_unique<Averaged>(std::move(wrapped.optimizer),
                                    SecondWeights(name, "average", std::move(all), rule),
                                    recompute);
}

}  // namespace

void visit(config::Visitor& visitor, EmaConfig& config) {
  visitor.field(share_field("decay", "decay rate of the moving average"), config.decay);
  visitor.field({.name = "warmup", .help = "warm up the decay: min(decay, (1 + n) / (10 + n))"},
                config.warmup);
  visitor.field({.name = "every", .help = "updates between two averaging steps", .min = 1},
                config.every);
  visitor.field(schedule::span_field("start", "when averaging starts"), config.start);
}

void visit(config::Visitor& visitor, SwaConfig& config) {
  visitor.field(schedule::span_field("start", "when averaging starts"), config.start);
  visitor.field(schedule::span_field("every", "interval between averaged weights"), config.every);
  visitor.field(
      {.name = "batch_norm",
       .help =
           "batch norm statistics of the average: recomputed at the end of the run, or averaged",
       .choices = {"recompute", "average"}},
      config.batch_norm);
}

std::unique_ptr<Optimizer> make_ema(const EmaConfig& config, Wrapped wrapped) {
  const int64_t start = first_step("ema", config.start, config.every, wrapped.length);
  return make_average("ema", std::move(wrapped),
                      {.kind = kernel::AverageRule::Kind::kDecay,
                       .number = config.decay,
                       .warmup = config.warmup,
                       .start = start,
                       .every = config.every},
                      /*recompute=*/false);
}

std::unique_ptr<Optimizer> make_swa(const SwaConfig& config, Wrapped wrapped) {
  const int64_t every = wrapped.length.steps_between(config.every);
  if (every < 1) {
    throw UsageError(
        fmt::format("optimizer.wrappers: swa: every '{}' is less than one step", config.every));
  }
  const int64_t start = first_step("swa", config.start, every, wrapped.length);
  return make_average("swa", std::move(wrapped),
                      {.kind = kernel::AverageRule::Kind::kEqual, .start = start, .every = every},
                      config.batch_norm == "recompute");
}

std::string tensor_copied_by(const std::string& state_name) {
  std::string_view rest = state_name;
  for (const std::string_view wrapper : {"ema.", "swa.", "lookahead."}) {
    if (rest.starts_with(wrapper)) rest.remove_prefix(wrapper.size());
  }
  for (const std::string_view copy : {"average.", "slow.", "training.", "z."}) {
    if (rest.starts_with(copy)) return std::string(rest.substr(copy.size()));
  }
  return {};
}

}  // namespace gallop::optim
