#pragma once

namespace gallop {

/// CPU seconds of all threads of this process.
double process_cpu_seconds();

}  // namespace gallop
