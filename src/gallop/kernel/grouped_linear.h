#pragma once

#include <ATen/core/Tensor.h>

// A linear layer for each expert, over rows that are sorted by expert (a grouped GEMM). Which rows
// belong to an expert is data, so that all sizes are known before: `ranges`, int64 [E, 2], has the
// begin and the end of the rows of each of E experts, ascending and disjoint. Tensors are in fp32,
// fp64 or bf16, all in the same. On a GPU the ranges are read by the host.
namespace gallop::kernel {

/// y[r] = weight[e] x[r] for the rows r of expert e, and 0 for rows of none: x [R, K], weight
/// [E, N, K], y [R, N].
at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ranges);
/// The gradient of x for dy, that of y. 0 for rows of no expert.
at::Tensor grouped_linear_dgrad(const at::Tensor& dy, const at::Tensor& weight,
                                const at::Tensor& ranges);
/// The gradient of the weight. 0 for experts without rows.
at::Tensor grouped_linear_wgrad(const at::Tensor& dy, const at::Tensor& x,
                                const at::Tensor& ranges);

}  // namespace gallop::kernel
