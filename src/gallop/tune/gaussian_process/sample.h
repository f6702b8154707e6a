#pragma once

#include "gallop/tune/gaussian_process/matrix.h"
#include "gallop/tune/random.h"

namespace gallop::tune {

/// Points that fill the unit cube evenly, a row each, without its faces: of Sobol's sequence, with
/// digits that are turned at random, the same for all points (a digital shift; scrambled() would
/// take longer than the rest of a trial). What goes beyond its dimensions is random.
Matrix even_sample(size_t count, size_t dimensions, Random& random);

}  // namespace gallop::tune
