#pragma once

#include <string>

#include "gallop/config/visitor.h"
#include "gallop/schedule/schedule.h"

namespace gallop::schedule {

/// The base learning rate throughout.
struct ConstantConfig {};

/// Linear rise from `start` to 1 over the first `warmup` of the run, then down to `final` (Smith
/// and Topin, "Super-convergence", 2018, with the shape of PyTorch's OneCycleLR with two phases).
struct OneCycleConfig {
  double warmup = 0.25;
  double start = 0.04;
  double final = 0.0;
  std::string shape = "linear";
};

/// Linear warm-up from 0, then half a cosine to `final` (Loshchilov and Hutter, "SGDR", 2017).
struct CosineConfig {
  double warmup = 0.0;
  double final = 0.0;
};

void visit(config::Visitor& visitor, ConstantConfig& config);
void visit(config::Visitor& visitor, OneCycleConfig& config);
void visit(config::Visitor& visitor, CosineConfig& config);

std::unique_ptr<Schedule> make_constant(const ConstantConfig& config);
std::unique_ptr<Schedule> make_one_cycle(const OneCycleConfig& config);
std::unique_ptr<Schedule> make_cosine(const CosineConfig& config);

}  // namespace gallop::schedule
