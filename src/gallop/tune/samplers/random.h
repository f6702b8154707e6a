#pragma once

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Random search: independent samples of the space (Bergstra and Bengio, 2012).
struct RandomConfig {};

void visit(config::Visitor& visitor, RandomConfig& config);
std::unique_ptr<Sampler> make_random(const RandomConfig& config, const StudySettings& settings);

/// The quantile functions of the sampling distribution of choices and parameters; `share` in [0,
/// 1).
double choice_at_share(const Choices& choices, double share);
double value_at_share(const Parameter& parameter, double share);

}  // namespace gallop::tune
