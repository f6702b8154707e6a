#pragma once

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Independent random points (Bergstra and Bengio, 2012).
struct RandomConfig {};

void visit(config::Visitor& visitor, RandomConfig& config);
std::unique_ptr<Sampler> make_random(const RandomConfig& config, const StudySettings& settings);

/// The choice, and the value of a parameter, up to which this share of all draws lies; in [0, 1).
double choice_at_share(const Choices& choices, double share);
double value_at_share(const Parameter& parameter, double share);

}  // namespace gallop::tune
