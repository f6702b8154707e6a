#pragma once

#include <cstdint>
#include <utility>

#include <c10/core/CPUAllocator.h>

#include "gallop/kernel/cpu/products.h"
#include "gallop/kernel/isa.h"

namespace gallop::kernel {

/// How many parts of one size a whole has, and the size of all of them.
inline int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }
inline int64_t up_to(int64_t size, int64_t step) { return parts_of(size, step) * step; }

template <typename Number>
int64_t padded(int64_t size) {
  return up_to(size, kProductPad<Number>);
}

/// The products of one thread, made and gone there: c[m, n] (+)= a[m, k] b[k, n], b paired, k
/// padded, m and n multiples of 16.
template <typename Number>
class Products {
 public:
  explicit Products(Isa isa);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  void multiply(int64_t m, int64_t n, int64_t k, const Number* a, int64_t a_stride, const Number* b,
                int64_t b_stride, float* c, int64_t c_stride, bool add) const;
  /// c += a b with a in blocks of kProductPad columns, [k / kProductPad, m, kProductPad].
  void multiply_blocks(int64_t m, int64_t n, int64_t k, const Number* a, const Number* b,
                       int64_t b_stride, float* c, int64_t c_stride) const;

 private:
  ProductBodies<Number> bodies_;
  alignas(64) char state_[ProductBodies<Number>::kStateBytes] = {};
};

/// Memory of one thread, with whatever lies in it, handed out in parts that begin at cache lines.
class Scratch {
 public:
  explicit Scratch(int64_t bytes)
      : memory_(c10::GetCPUAllocator()->allocate(static_cast<size_t>(bytes))),
        next_(static_cast<char*>(memory_.get())) {}

  template <typename Number>
  Number* take(int64_t count) {
    return reinterpret_cast<Number*>(std::exchange(next_, next_ + bytes_of<Number>(count)));
  }
  /// What take() uses up.
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
