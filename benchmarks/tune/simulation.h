#pragma once

#include <cstdint>
#include <vector>

#include "gallop/tune/sampler.h"
#include "problems.h"

namespace gallop::tune {

/// A study that workers run at the same time, on a clock that only counts: each trial takes a time
/// that is log-normal (median 1, deviation of the logarithm 0.5) and depends on the study's seed
/// and the trial's number alone.
struct Simulation {
  const Problem* problem;
  int64_t trials;
  int64_t workers = 1;
  uint64_t seed = 1;
};

/// After each trial in the order in which they ended, by how much the value without noise of the
/// one with the smallest observation is above the smallest there is. Fewer where the sampler has
/// no more to propose.
std::vector<double> regrets(const Simulation& simulation, Sampler& sampler, Study study);

/// Tells the study what became of a trial that was asked for.
void queue_and_start(Study& study, const Point& point, double time);
void finish(Study& study, int64_t trial, std::vector<double> losses, double time);

}  // namespace gallop::tune
