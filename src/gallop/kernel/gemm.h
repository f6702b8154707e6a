#pragma once

#include <cstdint>
#include <utility>

#include <c10/core/CPUAllocator.h>

#include "gallop/kernel/cpu/gemm.h"
#include "gallop/kernel/isa.h"

namespace gallop::kernel {

/// The number of parts of this size, the last of which may be smaller.
inline int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }
inline int64_t up_to(int64_t size, int64_t step) { return parts_of(size, step) * step; }

template <typename Number>
int64_t padded(int64_t size) {
  return up_to(size, kGemmPad<Number>);
}

/// GEMMs of one thread, to be created and destroyed there: c[m, n] (+)= a[m, k] b[k, n], b
/// VNNI-packed, k padded, m and n multiples of 16.
template <typename Number>
class Gemm {
 public:
  explicit Gemm(Isa isa);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  void multiply(int64_t m, int64_t n, int64_t k, const Number* a, int64_t a_stride, const Number* b,
                int64_t b_stride, float* c, int64_t c_stride, bool add) const;
  /// c += a b with a in blocks of kGemmPad columns, [k / kGemmPad, m, kGemmPad].
  void multiply_blocks(int64_t m, int64_t n, int64_t k, const Number* a, const Number* b,
                       int64_t b_stride, float* c, int64_t c_stride) const;

 private:
  GemmKernels<Number> kernels_;
  alignas(64) char state_[GemmKernels<Number>::kStateBytes] = {};
};

/// Uninitialized memory of one thread, handed out in parts that begin at cache lines.
class Scratch {
 public:
  explicit Scratch(int64_t bytes)
      : memory_(c10::GetCPUAllocator()->allocate(static_cast<size_t>(bytes))),
        next_(static_cast<char*>(memory_.get())) {}

  template <typename Number>
  Number* take(int64_t count) {
    return reinterpret_cast<Number*>(std::exchange(next_, next_ + bytes_of<Number>(count)));
  }
  /// The number of bytes that take() uses.
  template <typename Number>
  static int64_t bytes_of(int64_t count) {
    constexpr int64_t kLine = 64;
    return (count * static_cast<int64_t>(sizeof(Number)) + kLine - 1) / kLine * kLine;
  }

 private:
  c10::DataPtr memory_;
  char* next_;
};

}  // namespace gallop::kernel
