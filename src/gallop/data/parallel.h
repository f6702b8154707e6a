#pragma once

#include <cstdint>
#include <functional>

namespace gallop::data {

/// Calls `work(i)` for every i in [0, count), on the calling thread and `threads - 1` others, and
/// returns when all have ended. If calls throw, the error of the lowest i is thrown, whatever the
/// number of threads; calls that have not begun by then are skipped.
void run_parallel(int threads, int64_t count, const std::function<void(int64_t)>& work);

}  // namespace gallop::data
