#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::optim {

/// The defined gradients of the parameters, in order.
std::vector<at::Tensor> gradients_of(const NamedTensors& parameters);

/// Removes the gradients of the parameters.
void drop_gradients(const NamedTensors& parameters);

/// The Euclidean norm of all gradients: fp64 scalar tensor on their device (CPU for none). It is
/// finite if and only if every float gradient is. On the CPU the reduction uses fixed chunks in a
/// fixed order, so that the result does not depend on the number of threads.
at::Tensor gradient_norm(at::TensorList gradients);

/// The divisor for clipping by norm, as Optimizer::step() takes it, so that gradients with norm
/// `norm` get at most `max_norm` (above 0): fp32 scalar tensor, at least 1, and 1 if `norm` is not
/// finite. (Pascanu et al., "On the difficulty of training recurrent neural networks", ICML 2013.)
at::Tensor clip_divisor(const at::Tensor& norm, double max_norm);

/// Clamps all gradient elements to [-limit, limit], in place. `scale`, if defined (fp32 scalar), is
/// the loss scale that multiplies the gradients.
void clip_values(at::TensorList gradients, double limit, const at::Tensor& scale = {});

/// Adaptive gradient clipping, in place: the gradient norm of each unit is limited to `limit` times
/// the norm of the unit's weights (at least 1e-3). A unit is a row of a matrix, a filter of a
/// convolution, or a whole vector. Parameters from the last matrix on, the classifier, are not
/// clipped. (Brock et al., "High-performance large-scale image recognition without normalization",
/// ICML 2021; vectors as in timm.) `scale` as above.
void clip_adaptively(const NamedTensors& parameters, double limit, const at::Tensor& scale = {});

/// The name of the first tensor that contains an infinity or a NaN; empty for none.
std::string first_non_finite(const NamedTensors& tensors);

/// The name of the first parameter whose gradient contains an infinity or a NaN; empty for none.
/// Slower than gradient_norm(), which detects whether there is one.
std::string first_non_finite_gradient(const NamedTensors& parameters);

}  // namespace gallop::optim
