#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// Whether linear_gemm() supports these and is the fastest way: on the CPU with tiles, x [R, K] and
/// a weight [N, K], or [K, N] if not `transposed_weight`, both contiguous in bf16, of many rows, N
/// and K multiples of 32, and a weight that stays in the core's cache.
bool takes_linear_gemm(const at::Tensor& x, const at::Tensor& weight, bool transposed_weight);

/// x weight^T, or x weight if not `transposed_weight`, in bf16 [R, N]: the forward pass of a large
/// linear layer, and the gradient of its inputs. Accumulates in fp32 in one order for any
/// number of threads.
at::Tensor linear_gemm(const at::Tensor& x, const at::Tensor& weight, bool transposed_weight);

}  // namespace gallop::kernel
