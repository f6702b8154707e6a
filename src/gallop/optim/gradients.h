#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::optim {

/// The defined gradients of the parameters, in their order.
std::vector<at::Tensor> gradients_of(const NamedTensors& parameters);

/// Leaves the parameters without gradients.
void drop_gradients(const NamedTensors& parameters);

/// Euclidean norm of all gradients together: fp64, no dimensions, on their device (CPU for none).
/// It is finite if and only if every gradient of type float is. On the CPU the sum is taken over
/// fixed chunks in a fixed order, so that its bits do not depend on the number of threads.
at::Tensor gradient_norm(at::TensorList gradients);

/// What divides gradients whose norm is `norm` so that it becomes at most `max_norm` (above 0), as
/// Optimizer::step() takes it: fp32, no dimensions, at least 1, and 1 where `norm` is not finite.
/// (Pascanu et al., "On the difficulty of training recurrent neural networks", ICML 2013.)
at::Tensor clip_divisor(const at::Tensor& norm, double max_norm);

/// Brings every number of the gradients into [-limit, limit], in place. `scale`, where defined
/// (fp32, no dimensions), is what the gradients are multiplied by, as by a loss scaler.
void clip_values(at::TensorList gradients, double limit, const at::Tensor& scale = {});

/// Adaptive clipping, in place: the gradient of each unit has at most `limit` times the norm of the
/// unit's weights (of 1e-3 where that is less). A unit is a row of a matrix, a filter of a
/// convolution, or a whole vector. Parameters from the last matrix on, the classifier, are left
/// alone. (Brock et al., "High-performance large-scale image recognition without normalization",
/// ICML 2021; vectors as in timm.) `scale` as above.
void clip_adaptively(const NamedTensors& parameters, double limit, const at::Tensor& scale = {});

/// Name of the first parameter whose gradient holds an infinity or a NaN; empty for none. Slower
/// than gradient_norm(), which tells whether there is one.
std::string first_non_finite_gradient(const NamedTensors& parameters);

}  // namespace gallop::optim
