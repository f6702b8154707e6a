#include "gallop/kernel/products.h"

namespace gallop::kernel {

template <typename Number>
Products<Number>::Products(Isa isa) : bodies_(bodies_of<ProductBodies<Number>>(isa)) {
  bodies_.begin(state_);
}

template <typename Number>
Products<Number>::~Products() {
  bodies_.end(state_);
}

template <typename Number>
void Products<Number>::multiply(int64_t m, int64_t n, int64_t k, const Number* a, int64_t a_stride,
                                const Number* b, int64_t b_stride, float* c, int64_t c_stride,
                                bool add) const {
  bodies_.multiply(m, n, k, a, a_stride, b, b_stride, c, c_stride, add);
}

template <typename Number>
void Products<Number>::multiply_blocks(int64_t m, int64_t n, int64_t k, const Number* a,
                                       const Number* b, int64_t b_stride, float* c,
                                       int64_t c_stride) const {
  bodies_.multiply_blocks(m, n, k, a, b, b_stride, c, c_stride);
}

template class Products<float>;
template class Products<Bf16>;

}  // namespace gallop::kernel
