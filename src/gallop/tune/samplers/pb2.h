#pragma once

#include "gallop/tune/samplers/population.h"

namespace gallop::tune {

/// Population-based bandits (Parker-Holder et al., "Provably efficient online hyperparameter
/// optimization with population-based bandits", 2020): like population-based training (see
/// PopulationSampler), but a replaced member gets the point that maximizes the upper confidence
/// bound of a time-varying Gaussian process of the loss improvement per step, given the points in
/// training. It uses the last 200 segments, and the last 50 failed ones, which are imputed with the
/// worst; with fewer than two, the point is random.
struct Pb2Config {
  PopulationConfig population;
};

void visit(config::Visitor& visitor, Pb2Config& config);
std::unique_ptr<Sampler> make_pb2(const Pb2Config& config, const StudySettings& settings);

}  // namespace gallop::tune
