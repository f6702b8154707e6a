#pragma once

#include "gallop/tune/gaussian_process/matrix.h"
#include "gallop/tune/random.h"

namespace gallop::tune {

/// A quasi-random sample of the open unit cube, one point per row: a Sobol sequence with a random
/// digital shift (scrambled() would take longer than the rest of a trial). Dimensions beyond those
/// of the sequence are uniformly random.
Matrix even_sample(size_t count, size_t dimensions, Random& random);

}  // namespace gallop::tune
