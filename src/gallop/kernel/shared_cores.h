#pragma once

namespace gallop::kernel {

/// Whether the threads that compute give up their cores while they wait for each other.
///
/// OpenMP's threads wait by spinning, for up to 10 ms: fastest where the cores are theirs alone.
/// Where other programs take turns on them, one that spins keeps the core from the one that it
/// waits for, and a step takes many times its share of the machine. GNU's OpenMP spins a hundredth
/// of that once a process has more OpenMP threads than cores; so threads that only sleep make it
/// yield. One thread calls these.
void yield_cores(bool yield);
bool yields_cores();

/// To be called at each step of training, evaluation or prediction by the thread that starts the
/// work: yields while that thread waits for a core for more than a tenth of the time, which it
/// looks at a few times a second.
void yield_cores_if_shared();

}  // namespace gallop::kernel
