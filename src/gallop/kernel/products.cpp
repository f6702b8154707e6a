#include "gallop/kernel/products.h"

#include <type_traits>

#include <ATen/native/CPUBlas.h>

namespace gallop::kernel {

namespace {

// LibTorch's small products have the instruction that multiplies pairs of bf16, which we use only
// in the form of tiles.
bool library_is_faster(Isa isa) {
  return isa == Isa::kAvx512 && at::native::cpublas::could_pack(at::kBFloat16);
}

}  // namespace

template <typename Number>
Products<Number>::Products(Isa isa)
    : bodies_(bodies_of<ProductBodies<Number>>(isa)),
      by_library_(std::is_same_v<Number, Bf16> && library_is_faster(isa)) {
  bodies_.begin(state_);
}

template <typename Number>
Products<Number>::~Products() {
  bodies_.end(state_);
  if (by_library_) at::native::cpublas::brgemm_release();
}

template <typename Number>
void Products<Number>::multiply(int64_t m, int64_t n, int64_t k, const Number* a, int64_t a_stride,
                                const Number* b, int64_t b_stride, float* c, int64_t c_stride,
                                bool add) const {
  if (!by_library_) {
    return bodies_.multiply(m, n, k, a, a_stride, b, b_stride, c, c_stride, add);
  }
  at::native::cpublas::brgemm(m, n, k, a_stride, b_stride, c_stride, add,
                              reinterpret_cast<const at::BFloat16*>(a),
                              reinterpret_cast<const at::BFloat16*>(b), c);
}

template <typename Number>
void Products<Number>::multiply_blocks(int64_t m, int64_t n, int64_t k, const Number* a,
                                       const Number* b, int64_t b_stride, float* c,
                                       int64_t c_stride) const {
  if (!by_library_) return bodies_.multiply_blocks(m, n, k, a, b, b_stride, c, c_stride);
  constexpr int64_t kBlock = kProductPad<Number>;
  for (int64_t l = 0; l < k; l += kBlock) {
    multiply(m, n, kBlock, a + l * m, kBlock, b + l * b_stride, b_stride, c, c_stride, true);
  }
}

template class Products<float>;
template class Products<Bf16>;

}  // namespace gallop::kernel
