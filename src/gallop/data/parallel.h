#pragma once

#include <cstdint>
#include <functional>

namespace gallop::data {

/// Calls `work(i)` for every i in [0, count) on the calling thread and `threads - 1` others and
/// waits for all. If calls throw, rethrows the error of the lowest i, regardless of the number of
/// threads; calls that have not started by then are skipped.
void run_parallel(int threads, int64_t count, const std::function<void(int64_t)>& work);

}  // namespace gallop::data
