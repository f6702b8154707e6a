#pragma once

#include <cstdint>
#include <functional>

namespace gallop::data {

/// Calls `work(i)` for every i in [0, count), on the calling thread and `threads - 1` others, and
/// returns when all have ended. Where calls throw, the error of the lowest i is thrown, whatever
/// the number of threads; calls that had not begun by then are left out.
void run_parallel(int threads, int64_t count, const std::function<void(int64_t)>& work);

}  // namespace gallop::data
