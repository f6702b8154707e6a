#pragma once

#include "gallop/tune/samplers/population.h"

namespace gallop::tune {

/// Population-based bandits (Parker-Holder et al., "Provably efficient online hyperparameter
/// optimization with population-based bandits", 2020): as population-based training (see
/// PopulationSampler), but the point of a replaced member is the one with the largest expected gain
/// by a time-varying Gaussian process, of the change of the loss per step in each segment, given
/// the points in training. It uses the last 200 segments, and the last 50 that failed, which count
/// like the worst of them; before there are two, the point is random.
struct Pb2Config {
  PopulationConfig population;
};

void visit(config::Visitor& visitor, Pb2Config& config);
std::unique_ptr<Sampler> make_pb2(const Pb2Config& config, const StudySettings& settings);

}  // namespace gallop::tune
