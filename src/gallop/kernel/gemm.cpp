#include "gallop/kernel/gemm.h"

namespace gallop::kernel {

template <typename Number>
Gemm<Number>::Gemm(Isa isa) : kernels_(kernels_for<GemmKernels<Number>>(isa)) {
  kernels_.begin(state_);
}

template <typename Number>
Gemm<Number>::~Gemm() {
  kernels_.end(state_);
}

template <typename Number>
void Gemm<Number>::multiply(int64_t m, int64_t n, int64_t k, const Number* a, int64_t a_stride,
                            const Number* b, int64_t b_stride, float* c, int64_t c_stride,
                            bool add) const {
  kernels_.multiply(m, n, k, a, a_stride, b, b_stride, c, c_stride, add);
}

template <typename Number>
void Gemm<Number>::multiply_blocks(int64_t m, int64_t n, int64_t k, const Number* a,
                                   const Number* b, int64_t b_stride, float* c,
                                   int64_t c_stride) const {
  kernels_.multiply_blocks(m, n, k, a, b, b_stride, c, c_stride);
}

template class Gemm<float>;
template class Gemm<Bf16>;

}  // namespace gallop::kernel
