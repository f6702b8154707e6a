#pragma once

#include <cstdint>
#include <functional>

namespace gallop::kernel {

/// Calls body(i) for each of `count` parts: on all threads, or, if `alone`, on this one, which
/// then has all data in its core's cache. Denormals are 0 meanwhile; see FlushTiny.
void over_parts(int64_t count, bool alone, const std::function<void(int64_t)>& body);

}  // namespace gallop::kernel
