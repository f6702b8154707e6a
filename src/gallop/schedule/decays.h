#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/schedule/schedule.h"
#include "gallop/schedule/warmup.h"

// Constant or decaying schedules. p is progress, and s the elapsed fraction of the run after the
// warm-up.
namespace gallop::schedule {

/// Constant 1.
struct ConstantConfig {};

/// A warm-up, then 1.
struct RiseConfig : WarmupConfig {
  RiseConfig() : WarmupConfig{.length = "0.05"} {}
};

/// gamma^floor(p / step_size)
struct StepConfig {
  std::string step_size = "0.25";
  double gamma = 0.1;
};

/// gamma to the power of the number of milestones that p has reached.
struct MultiStepConfig {
  std::vector<std::string> milestones = {"0.5", "0.75"};
  double gamma = 0.1;
};

/// gamma^(p / step_size)
struct ExponentialConfig {
  std::string step_size = "1 epoch";
  double gamma = 0.9;
};

/// final + (1 - final) (1 - s)^power, as in DeepLab (Chen et al., 2017, with power 0.9)
struct PolynomialConfig {
  WarmupConfig warmup;
  double power = 1;
  double final = 0;
};

/// Linear from `start` to `final` over the first `length` of the run, then `final`.
struct LinearConfig {
  WarmupConfig warmup;
  double start = 1;
  double final = 0;
  std::string length = "1";
};

/// final + (1 - final) (1 + cos(pi s)) / 2 (Loshchilov and Hutter, "SGDR", 2017, without restarts)
struct CosineConfig {
  WarmupConfig warmup;
  double final = 0;
};

/// sqrt(warmup / p) after a required warm-up (Vaswani et al., "Attention is all you need", 2017,
/// relative to the peak learning rate)
struct InverseSqrtConfig {
  WarmupConfig warmup{.length = "0.05"};
};

/// Warm-up, stable, decay: 1, then down to `final` over the last `decay` of the run, linearly, by a
/// cosine, or by 1 - sqrt (Hägele et al., "Scaling laws and compute-optimal training beyond fixed
/// training durations", 2024).
struct WsdConfig {
  WarmupConfig warmup{.length = "0.05"};
  std::string decay = "0.2";
  std::string shape = "1-sqrt";
  double final = 0;
};

void visit(config::Visitor& visitor, ConstantConfig& config);
void visit(config::Visitor& visitor, RiseConfig& config);
void visit(config::Visitor& visitor, StepConfig& config);
void visit(config::Visitor& visitor, MultiStepConfig& config);
void visit(config::Visitor& visitor, ExponentialConfig& config);
void visit(config::Visitor& visitor, PolynomialConfig& config);
void visit(config::Visitor& visitor, LinearConfig& config);
void visit(config::Visitor& visitor, CosineConfig& config);
void visit(config::Visitor& visitor, InverseSqrtConfig& config);
void visit(config::Visitor& visitor, WsdConfig& config);

std::unique_ptr<Schedule> make_constant(const ConstantConfig& config, const RunLength& length);
std::unique_ptr<Schedule> make_rise(const RiseConfig& config, const RunLength& length);
std::unique_ptr<Schedule> make_step(const StepConfig& config, const RunLength& length);
std::unique_ptr<Schedule> make_multi_step(const MultiStepConfig& config, const RunLength& length);
std::unique_ptr<Schedule> make_exponential(const ExponentialConfig& config,
                                           const RunLength& length);
std::unique_ptr<Schedule> make_polynomial(const PolynomialConfig& config, const RunLength& length);
std::unique_ptr<Schedule> make_linear(const LinearConfig& config, const RunLength& length);
std::unique_ptr<Schedule> make_cosine(const CosineConfig& config, const RunLength& length);
std::unique_ptr<Schedule> make_inverse_sqrt(const InverseSqrtConfig& config,
                                            const RunLength& length);
std::unique_ptr<Schedule> make_wsd(const WsdConfig& config, const RunLength& length);

}  // namespace gallop::schedule
