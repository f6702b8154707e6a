#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// Whether embedding() supports them: indices int64 [.., T], weight [V, C] and positions [P, C]
/// with P at least T, in one format, fp32 or bf16, contiguous and on the CPU. Positions may be
/// undefined.
bool takes_embedding(const at::Tensor& indices, const at::Tensor& weight,
                     const at::Tensor& positions);

/// Rows of the weight by index, plus that of the position along T: [.., T, C]. Throws DataError if
/// an index is out of range.
at::Tensor embedding(const at::Tensor& indices, const at::Tensor& weight,
                     const at::Tensor& positions);

struct EmbeddingGradients {
  at::Tensor weight;     ///< [V, C]
  at::Tensor positions;  ///< [P, C]; undefined if P is 0.
};

/// The gradients for dy [.., T, C]. Each row is summed in registers and written once, in the
/// order of the indices for any number of threads. `rows` and `positions` are V and P.
EmbeddingGradients embedding_backward(const at::Tensor& dy, const at::Tensor& indices, int64_t rows,
                                      int64_t positions);

}  // namespace gallop::kernel
