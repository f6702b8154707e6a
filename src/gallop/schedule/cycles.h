#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gallop/schedule/schedule.h"

// Cyclic schedules, some with a momentum that moves in the opposite direction.
namespace gallop::schedule {

/// Cosine annealing from 1 to `final` in each period, with warm restarts; each period is
/// `multiplier` times as long as the previous one (Loshchilov and Hutter, "SGDR", 2017).
struct CosineRestartsConfig {
  std::string period = "0.25";
  double multiplier = 1;
  double final = 0;
};

/// A momentum that moves from `max_momentum` to `base_momentum` while the factor rises, and back.
/// Both or neither must be set.
struct MomentumConfig {
  std::optional<double> base_momentum{};
  std::optional<double> max_momentum{};
};

/// Triangular cycles between `low` and a peak that is constant 1 (triangular), halved each cycle
/// (triangular2), or decayed by `gamma` per period (exp-range), rising in the first `rise` of a
/// period (Smith, "Cyclical learning rates for training neural networks", 2017).
struct CyclicConfig {
  std::string mode = "triangular";
  std::string period = "0.25";
  double rise = 0.5;
  double low = 0.1;
  double gamma = 0.5;
  MomentumConfig momentum;
};

/// From `start` to 1 over `warmup`. With two phases, then down to `final` at the end of the run;
/// with three, back to `start` in the same time, then to `final` (Smith and Topin,
/// "Super-convergence", 2018).
struct OneCycleConfig {
  std::string warmup = "0.25";
  double start = 0.04;
  double final = 0.0;
  std::string shape = "linear";
  int64_t phases = 2;
  MomentumConfig momentum;
};

void visit(config::Visitor& visitor, CosineRestartsConfig& config);
void visit(config::Visitor& visitor, CyclicConfig& config);
void visit(config::Visitor& visitor, OneCycleConfig& config);

std::unique_ptr<Schedule> make_cosine_restarts(const CosineRestartsConfig& config,
                                               const RunLength& length);
std::unique_ptr<Schedule> make_cyclic(const CyclicConfig& config, const RunLength& length);
std::unique_ptr<Schedule> make_one_cycle(const OneCycleConfig& config, const RunLength& length);

}  // namespace gallop::schedule
