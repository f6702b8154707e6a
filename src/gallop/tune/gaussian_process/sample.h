#pragma once

#include "gallop/tune/gaussian_process/matrix.h"
#include "gallop/tune/random.h"

namespace gallop::tune {

/// Points that fill the unit cube evenly, a row each, without its faces: scrambled ones of Sobol's
/// sequence. What goes beyond its dimensions is random.
Matrix even_sample(size_t count, size_t dimensions, Random& random);

}  // namespace gallop::tune
