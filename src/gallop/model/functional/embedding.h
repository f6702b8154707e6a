#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// Rows of weight [V, C] at int64 indices [.., T], plus row t of positions [P, C] if defined, with
/// the gradients of both. Uses gallop's kernel if it supports them (kernel/embedding.h), otherwise
/// LibTorch's operators.
at::Tensor embedding(const at::Tensor& indices, const at::Tensor& weight,
                     const at::Tensor& positions = {});

}  // namespace gallop::model::functional
