#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace gallop::kernel {

/// Rows that one thread processes at a time, to amortize the cost of a call: about 16384 elements.
int64_t rows_of_grain(int64_t columns);

/// Calls body(begin, end, sums) for blocks of at most 32 rows, on all threads. Each fills its own
/// `sums` of `count` elements, which are then added up: as blocks and their order depend on `rows`
/// only, the bits of the result do not depend on the number of threads.
std::vector<float> sums_over_rows(
    int64_t rows, int64_t count,
    const std::function<void(int64_t begin, int64_t end, float* sums)>& body);

}  // namespace gallop::kernel
