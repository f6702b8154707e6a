#pragma once

// Replacements of std::min and others, which sources of this folder cannot call; see simd.h.

#include <cstdint>

namespace gallop::kernel {
namespace {

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t most(int64_t a, int64_t b) { return a < b ? b : a; }
/// The number of parts of this size, of which the last one may be smaller.
inline int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }

}  // namespace
}  // namespace gallop::kernel
