#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Several functions of the same numbers from 0 to 1 that are to be made small. fronts.py has the
/// same.
struct FrontProblem {
  std::string name;
  size_t parameters;
  std::vector<double> reference;  ///< The worst values there are.
  double volume;                  ///< Of what the best points dominate up to it.
  std::function<std::vector<double>(const Point&)> values;
};

/// ZDT1 and ZDT2 (Zitzler, Deb and Thiele, 2000), DTLZ2 with three objectives (Deb et al., 2002).
const std::vector<FrontProblem>& front_problems();

/// The hypervolume that is missing after each `every` of so many trials, one after the other.
std::vector<double> missing_volumes(const FrontProblem& problem, int64_t trials, int64_t every,
                                    Sampler& sampler, Study study);

/// What a search of a problem is.
StudySettings front_settings(const FrontProblem& problem, uint64_t seed);

}  // namespace gallop::tune
