#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gallop/tune/space.h"

namespace gallop::tune {

/// A function that is to be made small. problems.py has the same.
struct Problem {
  std::string name;
  Space space;
  double smallest;   ///< Of all its values.
  double noise = 0;  ///< The standard deviation of what is added where it is observed.
  std::function<double(const Point&)> value;
};

/// Branin, Hartmann-6 (also with noise), Ackley-10, Rosenbrock-4, and one with parameters of all
/// kinds, of which some are there only with others.
std::vector<Problem> problems();

}  // namespace gallop::tune
