#pragma once

#include <cstdint>
#include <vector>

#include "gallop/tune/sampler.h"
#include "problems.h"

namespace gallop::tune {

/// A study with parallel workers on a simulated clock: the duration of each trial is log-normal
/// (median 1, standard deviation of the logarithm 0.5) and depends only on the study's seed and the
/// trial's number.
struct Simulation {
  const Problem* problem;
  int64_t trials;
  int64_t workers = 1;
  uint64_t seed = 1;
};

/// The regret after each trial, in the order in which trials end: the noiseless value of the trial
/// with the smallest observation, minus the minimum of the function. Fewer if the sampler is
/// exhausted.
std::vector<double> regrets(const Simulation& simulation, Sampler& sampler, Study study);

/// Tells the study the result of a trial that was asked for.
void queue_and_start(Study& study, const Point& point, double time);
void finish(Study& study, int64_t trial, std::vector<double> losses, double time);

}  // namespace gallop::tune
