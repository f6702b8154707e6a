#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::optim {

/// The defined gradients of the parameters, in their order.
std::vector<at::Tensor> gradients_of(const NamedTensors& parameters);

/// Euclidean norm of all gradients together: fp64, no dimensions, on their device (CPU for none).
/// It is finite if and only if every gradient of type float is. On the CPU the sum is taken over
/// fixed chunks in a fixed order, so that its bits do not depend on the number of threads.
at::Tensor gradient_norm(at::TensorList gradients);

/// Scales the gradients in place so that their norm, which is `norm` now, becomes at most
/// `max_norm` (above 0). Nothing is written where it is already, or where `norm` is not finite.
/// (Pascanu et al., "On the difficulty of training recurrent neural networks", ICML 2013.)
void clip_gradients(at::TensorList gradients, const at::Tensor& norm, double max_norm);

/// Name of the first parameter whose gradient holds an infinity or a NaN; empty for none. Slower
/// than gradient_norm(), which tells whether there is one.
std::string first_non_finite_gradient(const NamedTensors& parameters);

}  // namespace gallop::optim
