#pragma once

#include <c10/core/ScalarType.h>

namespace gallop::kernel {

/// The most FLOPs per second that all threads of this process reach together with multiply-adds in
/// registers, the best of some short runs of a few milliseconds each: the limit of GEMMs and
/// convolutions on the CPU. Formats without instructions of their own have the rate of fp32.
double peak_flops_per_second(c10::ScalarType format);

/// The most bytes per second that all threads read and write together where they work on so many
/// bytes, half of which are read and half written; the best of some runs.
double peak_bytes_per_second(double bytes);

}  // namespace gallop::kernel
