#pragma once

#include <nlohmann/json.hpp>

#include "cases.h"

namespace gallop::benchmark {

/// GB/s of reading and writing 256 MB, by all threads.
double copy_gb_per_second();

/// The forms in turn for so many rounds. Prints a line of the table, whose columns print_head()
/// names, and returns the same numbers.
nlohmann::json measure(const Case& one, int rounds);
void print_head(double copy_gb_per_second);

}  // namespace gallop::benchmark
