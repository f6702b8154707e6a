#pragma once

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Bayesian optimization with Gaussian processes: suggests the point with the largest expected
/// improvement under a model of the losses (Snoek, Larochelle and Adams, "Practical Bayesian
/// optimization of machine learning algorithms", 2012). See gaussian_process/ for the model, the
/// acquisition function, and its optimization. Running trials are integrated out by Monte Carlo.
/// Supports one to three objectives and modeled constraints.
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
