#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// Rows of weight [V, C] by int64 indices [.., T], plus row t of positions [P, C] where they are
/// defined, with the gradients of both. By gallop's kernel where it takes them
/// (kernel/embedding.h), else by LibTorch's operators.
at::Tensor embedding(const at::Tensor& indices, const at::Tensor& weight,
                     const at::Tensor& positions = {});

}  // namespace gallop::model::functional
