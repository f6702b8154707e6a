#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// Chances that a block is left out, from 0 for the first of `count` in even steps up to `last` for
/// the last (Huang et al., "Deep networks with stochastic depth", ECCV 2016, as in timm).
std::vector<double> stochastic_depth_rates(double last, int64_t count);

/// In training each sample of x [N, ...] is set to 0 with chance p, else multiplied by 1 / (1 - p);
/// else x itself. The N numbers are those of a fixed_dropout() of ones.
at::Tensor drop_samples(const at::Tensor& x, double p, bool training);

}  // namespace gallop::model::functional
