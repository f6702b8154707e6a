#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gallop/tune/space.h"

namespace gallop::tune {

/// A function to minimize. problems.py has the same functions.
struct Problem {
  std::string name;
  Space space;
  double smallest;   ///< The minimum of the function.
  double noise = 0;  ///< Standard deviation of the noise of an observation.
  std::function<double(const Point&)> value;
};

/// Branin, Hartmann-6 (also with noise), Ackley-10, Rosenbrock-4, and one with parameters of all
/// kinds, including conditional ones.
std::vector<Problem> problems();

}  // namespace gallop::tune
