#pragma once

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Points of a Sobol sequence, scrambled by the study's seed. Trial n gets the n-th point that
/// satisfies the constraints.
struct QuasiRandomConfig {
  bool scramble = true;
};

void visit(config::Visitor& visitor, QuasiRandomConfig& config);
std::unique_ptr<Sampler> make_quasi_random(const QuasiRandomConfig& config,
                                           const StudySettings& settings);

}  // namespace gallop::tune
