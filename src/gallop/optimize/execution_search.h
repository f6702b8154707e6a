#pragma once

#include "gallop/optimize/search_state.h"

namespace gallop::optimize {

/// Tries changes of execution, by speeds and training losses, those with the largest predicted gain
/// first.
void try_execution(SearchState& state);

}  // namespace gallop::optimize
