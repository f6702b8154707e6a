#pragma once

namespace gallop {

/// Seconds that the threads of this process have spent on cores.
double process_cpu_seconds();

}  // namespace gallop
