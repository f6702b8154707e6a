#include "gallop/schedule/decays.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/schedule/curves.h"

namespace gallop::schedule {

namespace {

const config::Field kGamma{.name = "gamma",
                           .help = "multiplicative factor of each decay",
                           .min = 0,
                           .max = 1,
                           .above_min = true};

// The warm-up, then `rest` as a function of the fraction of the remaining run.
template <typename Rest>
std::unique_ptr<Schedule> after_warmup(const char* schedule, const WarmupConfig& config,
                                       const RunLength& length, Rest rest) {
  return make_curve([warmup = Warmup(schedule, config, length), rest](double progress) {
    if (!warmup.is_over(progress)) return warmup.factor(progress);
    return rest(warmup.share_of_rest(progress));
  });
}

}  // namespace

void visit(config::Visitor&, ConstantConfig&) {}

void visit(config::Visitor& visitor, RiseConfig& config) {
  visit_warmup(visitor, config, {.length = "length", .kind = "kind", .start = "start"});
}

void visit(config::Visitor& visitor, StepConfig& config) {
  visitor.field(span_field("step_size", "interval between decays"), config.step_size);
  visitor.field(kGamma, config.gamma);
}

void visit(config::Visitor& visitor, MultiStepConfig& config) {
  visitor.field(span_field("milestones", "when the factor decays, ascending"), config.milestones);
  visitor.field(kGamma, config.gamma);
}

void visit(config::Visitor& visitor, ExponentialConfig& config) {
  visitor.field(span_field("step_size", "time to decay by gamma"), config.step_size);
  visitor.field(kGamma, config.gamma);
}

void visit(config::Visitor& visitor, PolynomialConfig& config) {
  visit_warmup(visitor, config.warmup);
  visitor.field({.name = "power", .help = "exponent; 1 is linear", .min = 0, .above_min = true},
                config.power);
  visitor.field(kFinal, config.final);
}

void visit(config::Visitor& visitor, LinearConfig& config) {
  visit_warmup(visitor, config.warmup);
  visitor.field({.name = "start", .help = "initial factor", .min = 0, .max = 1}, config.start);
  visitor.field(kFinal, config.final);
  visitor.field(span_field("length", "length, without the warm-up"), config.length);
}

void visit(config::Visitor& visitor, CosineConfig& config) {
  visit_warmup(visitor, config.warmup);
  visitor.field(kFinal, config.final);
}

void visit(config::Visitor& visitor, InverseSqrtConfig& config) {
  visit_warmup(visitor, config.warmup);
}

void visit(config::Visitor& visitor, WsdConfig& config) {
  visit_warmup(visitor, config.warmup);
  visitor.field(span_field("decay", "length of the final decay"), config.decay);
  visitor.field(
      {.name = "shape", .help = "curve of the decay", .choices = {"linear", "cosine", "1-sqrt"}},
      config.shape);
  visitor.field(kFinal, config.final);
}

std::unique_ptr<Schedule> make_constant(const ConstantConfig&, const RunLength&) {
  return make_curve([](double) { return 1.0; });
}

std::unique_ptr<Schedule> make_rise(const RiseConfig& config, const RunLength& length) {
  return after_warmup("warmup", config, length, [](double) { return 1.0; });
}

std::unique_ptr<Schedule> make_step(const StepConfig& config, const RunLength& length) {
  const double size = period_share("step", "step_size", config.step_size, length);
  return make_curve([size, gamma = config.gamma](double progress) {
    return std::pow(gamma, cycle_at(progress, size).number);
  });
}

std::unique_ptr<Schedule> make_multi_step(const MultiStepConfig& config, const RunLength& length) {
  const auto milestones = rising_shares("multi-step", config.milestones, length);
  return make_curve([milestones, gamma = config.gamma](double progress) {
    const auto passed = std::count_if(milestones.begin(), milestones.end(),
                                      [&](double at) { return has_reached(progress, at); });
    return std::pow(gamma, static_cast<double>(passed));
  });
}

std::unique_ptr<Schedule> make_exponential(const ExponentialConfig& config,
                                           const RunLength& length) {
  const double size = period_share("exponential", "step_size", config.step_size, length);
  return make_curve(
      [size, gamma = config.gamma](double progress) { return std::pow(gamma, progress / size); });
}

std::unique_ptr<Schedule> make_polynomial(const PolynomialConfig& config, const RunLength& length) {
  return after_warmup("polynomial", config.warmup, length,
                      [power = config.power, final = config.final](double share) {
                        return blend_linear(final, 1, std::pow(1 - share, power));
                      });
}

std::unique_ptr<Schedule> make_linear(const LinearConfig& config, const RunLength& length) {
  const double warm = length.share_of(config.warmup.length);
  const double line = period_share("linear", "length", config.length, length);
  // A fraction refers to the run after the warm-up; epochs and steps count from its end.
  const bool is_share = Span::parse(config.length).unit == Span::Unit::kShare;
  const double end = is_share || warm >= 1 ? line : line / (1 - warm);
  return after_warmup("linear", config.warmup, length,
                      [end, start = config.start, final = config.final](double share) {
                        return blend_linear(start, final, share_between(0, end, share));
                      });
}

std::unique_ptr<Schedule> make_cosine(const CosineConfig& config, const RunLength& length) {
  return after_warmup("cosine", config.warmup, length, [final = config.final](double share) {
    return blend_cosine(1, final, share);
  });
}

std::unique_ptr<Schedule> make_inverse_sqrt(const InverseSqrtConfig& config,
                                            const RunLength& length) {
  const Warmup warmup("inverse-sqrt", config.warmup, length);
  if (warmup.end() <= 0) {
    throw UsageError(
        "schedule inverse-sqrt: warmup is 0, but defines the decay; set one, "
        "such as 0.05");
  }
  return make_curve([warmup](double progress) {
    if (!warmup.is_over(progress)) return warmup.factor(progress);
    return std::fmin(1, std::sqrt(warmup.end() / progress));
  });
}

std::unique_ptr<Schedule> make_wsd(const WsdConfig& config, const RunLength& length) {
  const Warmup warmup("wsd", config.warmup, length);
  const double decay = length.share_of(config.decay);
  if (warmup.end() + decay > 1 + kRounding) {
    throw UsageError(
        fmt::format("schedule wsd: a warm-up of '{}' and a decay of '{}' are longer than the run",
                    config.warmup.length, config.decay));
  }
  return make_curve(
      [warmup, decay, blend = blend_of(config.shape), final = config.final](double progress) {
        if (!warmup.is_over(progress)) return warmup.factor(progress);
        if (decay == 0) return 1.0;
        return blend(1, final, share_between(1 - decay, 1, progress));
      });
}

}  // namespace gallop::schedule
