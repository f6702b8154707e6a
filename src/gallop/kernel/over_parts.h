#pragma once

#include <cstdint>
#include <functional>

namespace gallop::kernel {

/// Calls body(i) for each of so many parts: by all threads, or, where `alone`, by this one, which
/// has all of the work in its core's cache. Tiny numbers are 0 meanwhile; see FlushTiny.
void over_parts(int64_t count, bool alone, const std::function<void(int64_t)>& body);

}  // namespace gallop::kernel
