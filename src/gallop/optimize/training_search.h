#pragma once

#include "gallop/optimize/search_state.h"

namespace gallop::optimize {

/// Tries changes of the training, by final metrics: the metric of the recipe as it is, in mean over
/// seeds, is the target that a shorter training must reach. Throws DataError if that training
/// fails.
void try_training(SearchState& state);

}  // namespace gallop::optimize
