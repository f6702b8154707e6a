#pragma once

#include <vector>

namespace gallop {

/// The numbers of the cores that the system lets this program run on, in rising order, as they were
/// when it first asked; at least one.
const std::vector<int>& cores_given();

/// Keeps this thread, and those that it makes, on the core of that number. Does nothing where the
/// system does not let it.
void run_on_core(int number);

/// Lets this thread run on all of them again.
void run_on_all_cores();

}  // namespace gallop
