#pragma once

#include <vector>

#include "gallop/base/file.h"

namespace gallop {

/// The numbers of the cores that the system lets this program run on, in rising order, as they were
/// when it first asked; at least one.
const std::vector<int>& cores_given();

/// All that the machine has.
int cores_online();

/// The same cores in another order: those of a NUMA node side by side, in it those of a package,
/// and the threads of a core, as far as the kernel's folder tells
/// (docs.kernel.org/admin-guide/cputopology.html).
std::vector<int> side_by_side(std::vector<int> cores,
                              const fs::path& system = "/sys/devices/system");

/// The part'th of so many parts of all these cores, of neighbors in their order, so that of those
/// side by side a process keeps to one NUMA node where it can; in rising order. None where there
/// are fewer cores than parts, which then share all.
std::vector<int> part_of(const std::vector<int>& all, int part, int parts);

/// Lets this program have the cores of these numbers and no others from now on: those given, and of
/// its threads this one and those that it makes. Does nothing where the system does not let it.
void set_cpu_affinity(const std::vector<int>& numbers);

/// Keeps this thread, and those that it makes, on the core of that number. Does nothing where the
/// system does not let it.
void run_on_core(int number);

/// Lets this thread run on all of them again.
void run_on_all_cores();

}  // namespace gallop
