#pragma once

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Points that know nothing of each other (Bergstra and Bengio, 2012).
struct RandomConfig {};

void visit(config::Visitor& visitor, RandomConfig& config);
std::unique_ptr<Sampler> make_random(const RandomConfig& config, const StudySettings& settings);

/// The index of a choice, drawn by the weights.
double draw_choice(const Choices& choices, Random& random);

}  // namespace gallop::tune
