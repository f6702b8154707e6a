#include "gallop/schedule/cycles.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/schedule/curves.h"

namespace gallop::schedule {

namespace {

// Geometrically growing periods: period n, from 0, begins at period (m^n - 1) / (m - 1).
class GrowingPeriods {
 public:
  GrowingPeriods(double period, double multiplier) : period_(period), multiplier_(multiplier) {}

  double share(double progress) const {
    if (multiplier_ == 1) return cycle_at(progress, period_).share;
    const double current = number(progress);
    return share_between(begin(current), begin(current + 1), progress);
  }

  /// The index of the period of `progress`.
  double number(double progress) const {
    if (multiplier_ == 1) return cycle_at(progress, period_).number;
    const double passed = progress / period_ * (multiplier_ - 1);
    double number = std::floor(std::log1p(passed) / std::log(multiplier_));
    // The logarithm may be off by one because of rounding.
    if (number > 0 && !has_reached(progress, begin(number))) number -= 1;
    if (has_reached(progress, begin(number + 1))) number += 1;
    return number;
  }

 private:
  double begin(double number) const {
    return period_ * std::expm1(number * std::log(multiplier_)) / (multiplier_ - 1);
  }

  double period_, multiplier_;
};

class CosineRestarts final : public Schedule {
 public:
  CosineRestarts(const GrowingPeriods& periods, double final) : periods_(periods), final_(final) {}

  double factor(double progress) const override {
    return blend_cosine(1, final_, periods_.share(progress));
  }
  std::optional<bool> cycle_ends(double from, double to) const override {
    return periods_.number(to) > periods_.number(from);
  }

 private:
  GrowingPeriods periods_;
  double final_;
};

// The momentum, which moves opposite to the factor.
class Momentum {
 public:
  Momentum(const char* schedule, const MomentumConfig& config) {
    if (config.base_momentum.has_value() != config.max_momentum.has_value()) {
      throw UsageError(fmt::format(
          "schedule {}: base_momentum and max_momentum must be set together", schedule));
    }
    if (!config.base_momentum) return;
    base_ = *config.base_momentum;
    max_ = config.max_momentum;
    if (base_ > *max_) {
      throw UsageError(fmt::format("schedule {}: base_momentum {} is above max_momentum {}",
                                   schedule, base_, *max_));
    }
  }
  std::optional<double> at(double height) const {
    if (!max_) return {};
    return blend_linear(*max_, base_, height);
  }

 private:
  double base_ = 0;
  std::optional<double> max_;
};

class Cyclic final : public Schedule {
 public:
  Cyclic(const CyclicConfig& config, const RunLength& length)
      : config_(config),
        period_(period_share("cyclic", "period", config.period, length)),
        momentum_("cyclic", config.momentum) {}

  double factor(double progress) const override {
    return blend_linear(config_.low, 1, height(progress));
  }
  std::optional<double> momentum(double progress) const override {
    return momentum_.at(height(progress));
  }
  std::optional<bool> cycle_ends(double from, double to) const override {
    return cycle_at(to, period_).number > cycle_at(from, period_).number;
  }

 private:
  // In [0, 1].
  double height(double progress) const {
    const Cycle cycle = cycle_at(progress, period_);
    const double triangle = cycle.share <= config_.rise
                                ? cycle.share / config_.rise
                                : share_between(1, config_.rise, cycle.share);
    return triangle * peak(cycle.number, progress);
  }
  double peak(double number, double progress) const {
    if (config_.mode == "triangular2") return std::exp2(-number);
    return config_.mode == "exp-range" ? std::pow(config_.gamma, progress / period_) : 1;
  }

  CyclicConfig config_;
  double period_;
  Momentum momentum_;
};

class OneCycle final : public Schedule {
 public:
  OneCycle(const OneCycleConfig& config, const RunLength& length)
      : config_(config),
        blend_(blend_of(config.shape)),
        rise_(length.share_of(config.warmup)),
        momentum_("one-cycle", config.momentum) {
    const bool fits = config.phases == 3 ? rise_ <= 0.5 : rise_ < 1;
    if (fits) return;
    throw UsageError(
        fmt::format("schedule one-cycle: a warm-up of '{}' is {:.3g} of the run; with {} phases it "
                    "must be {}",
                    config.warmup, rise_, config.phases,
                    config.phases == 3 ? "at most half of it" : "shorter than it"));
  }

  double factor(double progress) const override {
    return along(progress, config_.start, 1, config_.final);
  }
  std::optional<double> momentum(double progress) const override {
    return momentum_.at(along(progress, 0, 1, 0));
  }

 private:
  double along(double progress, double start, double peak, double final) const {
    if (progress < rise_) return blend_(start, peak, progress / rise_);
    if (config_.phases == 2) return blend_(peak, final, share_between(rise_, 1, progress));
    if (progress < 2 * rise_) return blend_(peak, start, share_between(rise_, 2 * rise_, progress));
    if (rise_ == 0.5) return start;
    return blend_(start, final, share_between(2 * rise_, 1, progress));
  }

  OneCycleConfig config_;
  Blend blend_;
  double rise_;
  Momentum momentum_;
};

void visit_momentum(config::Visitor& visitor, MomentumConfig& config) {
  const auto field = [](const char* name, const char* help) {
    return config::Field{.name = name, .help = help, .min = 0, .max = 1, .below_max = true};
  };
  visitor.field(field("base_momentum", "momentum (or beta1) at the peak"), config.base_momentum);
  visitor.field(field("max_momentum", "momentum (or beta1) at the minimum"), config.max_momentum);
}

}  // namespace

void visit(config::Visitor& visitor, CosineRestartsConfig& config) {
  visitor.field(span_field("period", "length of the first cosine"), config.period);
  visitor.field({.name = "multiplier",
                 .help = "ratio of the lengths of successive cycles",
                 .min = 1,
                 .max = 100},
                config.multiplier);
  visitor.field({.name = "final", .help = "final factor of each cycle", .min = 0, .max = 1},
                config.final);
}

void visit(config::Visitor& visitor, CyclicConfig& config) {
  visitor.field(
      {.name = "mode",
       .help = "peak over the cycles: constant, halved each cycle, or decayed by gamma per period",
       .choices = {"triangular", "triangular2", "exp-range"}},
      config.mode);
  visitor.field(span_field("period", "length of one cycle"), config.period);
  visitor.field({.name = "rise",
                 .help = "fraction of a cycle in which the factor rises",
                 .min = 0,
                 .max = 1,
                 .above_min = true,
                 .below_max = true},
                config.rise);
  visitor.field({.name = "low", .help = "minimum factor", .min = 0, .max = 1}, config.low);
  visitor.field({.name = "gamma",
                 .help = "for exp-range: decay factor of the peak per period",
                 .min = 0,
                 .max = 1,
                 .above_min = true},
                config.gamma);
  visit_momentum(visitor, config.momentum);
}

void visit(config::Visitor& visitor, OneCycleConfig& config) {
  visitor.field(span_field("warmup", "length of the rise to 1"), config.warmup);
  visitor.field({.name = "start", .help = "initial factor", .min = 0, .max = 1}, config.start);
  visitor.field(kFinal, config.final);
  visitor.field({.name = "shape", .help = "curve of each phase", .choices = {"linear", "cosine"}},
                config.shape);
  visitor.field({.name = "phases",
                 .help = "number of phases; 2: up and down; 3: up, down in the same time, then "
                         "annealing to the end",
                 .min = 2,
                 .max = 3},
                config.phases);
  visit_momentum(visitor, config.momentum);
}

std::unique_ptr<Schedule> make_cosine_restarts(const CosineRestartsConfig& config,
                                               const RunLength& length) {
  const GrowingPeriods periods(period_share("cosine-restarts", "period", config.period, length),
                               config.multiplier);
  return std::make_unique<CosineRestarts>(periods, config.final);
}

std::unique_ptr<Schedule> make_cyclic(const CyclicConfig& config, const RunLength& length) {
  return std::make_unique<Cyclic>(config, length);
}

std::unique_ptr<Schedule> make_one_cycle(const OneCycleConfig& config, const RunLength& length) {
  return std::make_unique<OneCycle>(config, length);
}

}  // namespace gallop::schedule
