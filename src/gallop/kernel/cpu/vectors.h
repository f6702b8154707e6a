#pragma once

#include "gallop/kernel/cpu/simd.h"

namespace gallop::kernel {
namespace {

/// Access of a vector to arrays: all lanes, or the first `count`, with 0 in the others.
struct Whole {
  template <typename Number>
  F32 get(const Number* p) const {
    return load(p);
  }
  template <typename Number>
  void put(Number* p, F32 a) const {
    store(p, a);
  }
  F32 cleared(F32 a) const { return a; }
};
struct Part {
  int64_t count;
  template <typename Number>
  F32 get(const Number* p) const {
    return load(p, count);
  }
  template <typename Number>
  void put(Number* p, F32 a) const {
    store(p, a, count);
  }
  /// Sets the other lanes to 0.
  F32 cleared(F32 a) const {
    return select(mask_of(static_cast<uint16_t>((1U << count) - 1)), a, fill(0));
  }
};

/// Loads 16 vectors from rows of a matrix, and stores them.
template <typename Number>
inline void load_block(const Number* from, int64_t stride, F32* rows) {
  for (int64_t i = 0; i < kLanes; ++i) rows[i] = load(from + i * stride);
}
template <typename Number>
inline void store_block(Number* to, int64_t stride, const F32* rows) {
  for (int64_t i = 0; i < kLanes; ++i) store(to + i * stride, rows[i]);
}

/// The sum of a few vectors, as a tree.
inline F32 sum_of(const F32 (&list)[1]) { return list[0]; }
inline F32 sum_of(const F32 (&list)[4]) { return (list[0] + list[1]) + (list[2] + list[3]); }

/// Calls body(offset, Whole or Part) for each vector from `begin` to `end`.
template <typename Body>
inline void over_vectors(int64_t begin, int64_t end, const Body& body) {
  int64_t at = begin;
  for (; at + kLanes <= end; at += kLanes) body(at, Whole());
  if (at < end) body(at, Part{end - at});
}

}  // namespace
}  // namespace gallop::kernel
