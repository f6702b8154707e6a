#pragma once

#include <vector>

#include "gallop/tune/samplers/population.h"

namespace gallop::tune {

/// Population-based training (see PopulationSampler). A replaced member resamples each parameter
/// with `resample_probability`; otherwise it multiplies the donor's value by one of `factors`,
/// within the bounds and at least one step away, or takes the next choice of positive
/// weight.
struct PbtConfig {
  PopulationConfig population;
  double resample_probability = 0.25;
  std::vector<double> factors = {0.8, 1.2};
};

void visit(config::Visitor& visitor, PbtConfig& config);
std::unique_ptr<Sampler> make_pbt(const PbtConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
