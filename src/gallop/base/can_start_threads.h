#pragma once

namespace gallop {

/// Whether so many threads can be started at the same time: starts them, and ends them again.
/// Libraries such as GNU's OpenMP end the process if they cannot, which happens where memory or the
/// number of processes is limited. Stacks that fit into glibc's cache are left there for the next
/// threads.
bool can_start_threads(int count);

}  // namespace gallop
