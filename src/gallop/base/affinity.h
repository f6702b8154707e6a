#pragma once

namespace gallop {

/// Cores that the system lets this program run on, as they were when it first asked; at least 1.
int cores_given();

/// Keeps this thread, and those that it makes, on one of them, of 0 to cores_given(), exclusive.
/// Does nothing where the system does not let it.
void run_on_core(int number);

/// Lets this thread run on all of them again.
void run_on_all_cores();

}  // namespace gallop
