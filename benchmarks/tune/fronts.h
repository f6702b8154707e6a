#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// A problem with several objectives to minimize, over parameters from 0 to 1. fronts.py has the
/// same problems.
struct FrontProblem {
  std::string name;
  size_t parameters;
  std::vector<double> reference;  ///< The reference point: the worst values.
  double volume;                  ///< Hypervolume of the Pareto front.
  std::function<std::vector<double>(const Point&)> values;
};

/// ZDT1 and ZDT2 (Zitzler, Deb and Thiele, 2000), DTLZ2 with three objectives (Deb et al., 2002).
const std::vector<FrontProblem>& front_problems();

/// The hypervolume missing to that of the Pareto front, after every `every` sequential trials.
std::vector<double> missing_volumes(const FrontProblem& problem, int64_t trials, int64_t every,
                                    Sampler& sampler, Study study);

/// The settings of a study of a problem.
StudySettings front_settings(const FrontProblem& problem, uint64_t seed);

}  // namespace gallop::tune
