#pragma once

#include <vector>

#include "gallop/base/file.h"

namespace gallop {

/// The cores that this program may run on, ascending, as of the first call; at least one.
const std::vector<int>& cores_given();

/// The number of cores of the machine.
int cores_online();

/// Sorts cores by locality: by NUMA node, then by package, with the threads of a core adjacent, as
/// far as the kernel's sysfs folder describes them (docs.kernel.org/admin-guide/cputopology.html).
std::vector<int> side_by_side(std::vector<int> cores,
                              const fs::path& system = "/sys/devices/system");

/// The number of NUMA nodes of these cores according to sysfs; 1 if it does not list them.
int numa_nodes_of(const std::vector<int>& cores, const fs::path& system = "/sys/devices/system");

/// The `part`-th of `parts` contiguous slices of these cores, ascending; with cores sorted by
/// locality, a slice stays within one NUMA node if possible. Empty if there are fewer cores than
/// slices, which then share all cores.
std::vector<int> part_of(const std::vector<int>& all, int part, int parts);

/// Restricts this program to these cores (cores_given() from now on), i.e. this thread and threads
/// that it creates. Does nothing if the system does not allow it.
void set_cpu_affinity(const std::vector<int>& numbers);

/// Pins this thread, and threads that it creates, to a core. Does nothing if the system does not
/// allow it.
void run_on_core(int number);

/// Lets this thread run on all given cores again.
void run_on_all_cores();

}  // namespace gallop
