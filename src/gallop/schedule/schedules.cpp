#include "gallop/schedule/schedules.h"

#include <cmath>
#include <numbers>

namespace gallop::schedule {

namespace {

double linear(double from, double to, double share) { return std::lerp(from, to, share); }

// From `from` to `to` along half a cosine.
double cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

class Constant final : public Schedule {
 public:
  double factor(double) const override { return 1; }
};

class OneCycle final : public Schedule {
 public:
  explicit OneCycle(const OneCycleConfig& config)
      : config_(config), blend_(config.shape == "cosine" ? cosine : linear) {}
  double factor(double progress) const override {
    if (progress < config_.warmup) return blend_(config_.start, 1, progress / config_.warmup);
    return blend_(1, config_.final, (progress - config_.warmup) / (1 - config_.warmup));
  }

 private:
  OneCycleConfig config_;
  double (*blend_)(double, double, double);
};

class Cosine final : public Schedule {
 public:
  explicit Cosine(const CosineConfig& config) : config_(config) {}
  double factor(double progress) const override {
    if (progress < config_.warmup) return progress / config_.warmup;
    return cosine(1, config_.final, (progress - config_.warmup) / (1 - config_.warmup));
  }

 private:
  CosineConfig config_;
};

const config::Field kWarmup{.name = "warmup",
                            .help = "share of the run in which the learning rate rises",
                            .min = 0,
                            .max = 1,
                            .below_max = true};
const config::Field kFinal{
    .name = "final", .help = "factor of the learning rate at the end", .min = 0, .max = 1};

}  // namespace

void visit(config::Visitor&, ConstantConfig&) {}

void visit(config::Visitor& visitor, OneCycleConfig& config) {
  visitor.field(kWarmup, config.warmup);
  visitor.field(
      {.name = "start", .help = "factor of the learning rate at the beginning", .min = 0, .max = 1},
      config.start);
  visitor.field(kFinal, config.final);
  visitor.field({.name = "shape", .help = "curve of both phases", .choices = {"linear", "cosine"}},
                config.shape);
}

void visit(config::Visitor& visitor, CosineConfig& config) {
  visitor.field(kWarmup, config.warmup);
  visitor.field(kFinal, config.final);
}

std::unique_ptr<Schedule> make_constant(const ConstantConfig&) {
  return std::make_unique<Constant>();
}
std::unique_ptr<Schedule> make_one_cycle(const OneCycleConfig& config) {
  return std::make_unique<OneCycle>(config);
}
std::unique_ptr<Schedule> make_cosine(const CosineConfig& config) {
  return std::make_unique<Cosine>(config);
}

}  // namespace gallop::schedule
