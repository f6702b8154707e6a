#pragma once

#include "gallop/tune/samplers/population.h"

namespace gallop::tune {

/// Population-based bandits (Parker-Holder et al., "Provably efficient online hyperparameter
/// optimization with population-based bandits", 2020): as population-based training (see
/// PopulationSampler), but the point of a member that gives way is the one from which a Gaussian
/// process that discounts old observations expects most, by how much each segment has changed the
/// loss in a step and by the points that are being trained now. The last 200 segments count, and
/// the last 50 that failed, like the worst of them; before there are two, the point is random.
struct Pb2Config {
  PopulationConfig population;
};

void visit(config::Visitor& visitor, Pb2Config& config);
std::unique_ptr<Sampler> make_pb2(const Pb2Config& config, const StudySettings& settings);

}  // namespace gallop::tune
