#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// The norm of the difference of `found` and `truth`, over the norm of `truth`.
inline double error_of(const at::Tensor& found, const at::Tensor& truth) {
  const auto exact = truth.to(at::kDouble);
  return (found.to(at::kDouble) - exact).norm().item<double>() /
         (exact.norm().item<double>() + 1e-300);
}

/// Half a unit in the last place: what rounding the truth itself may miss.
inline double rounding_of(at::ScalarType format) {
  return format == at::kBFloat16 ? 0x1p-9 : 0x1p-24;
}

/// A copy that is the leaf of a graph of its own, for the reference's gradients; undefined stays
/// so.
inline at::Tensor leaf(const at::Tensor& tensor, at::ScalarType format) {
  if (!tensor.defined()) return tensor;
  return tensor.detach().to(format, /*non_blocking=*/false, /*copy=*/true).requires_grad_();
}

}  // namespace gallop::kernel
