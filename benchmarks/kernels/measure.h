#pragma once

#include <nlohmann/json.hpp>

#include "cases.h"

namespace gallop::benchmark {

/// GB/s of a copy of 256 MB by all threads.
double copy_gb_per_second();

/// Runs the forms alternately for a number of rounds. Prints a row of the table that print_head()
/// begins, and returns the same values.
nlohmann::json measure(const Case& one, int rounds);
void print_head(double copy_gb_per_second);

}  // namespace gallop::benchmark
