#pragma once

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Bayesian optimization with Gaussian processes: the point from which the most is expected, by a
/// model of the losses (Snoek, Larochelle and Adams, "Practical Bayesian optimization of machine
/// learning algorithms", 2012). See gaussian_process/ for the model, what is expected, and the
/// search for it. Trials that run count as if they had already come to what the model expects of
/// them. For one to three objectives; limits are modeled, too.
struct GpConfig {
  int64_t startup = 10;
  bool exact = false;
  int64_t candidates = 2048;
  int64_t starts = 10;
  int64_t samples = 128;
  int64_t most_trials = 1000;
};

void visit(config::Visitor& visitor, GpConfig& config);
std::unique_ptr<Sampler> make_gp(const GpConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
