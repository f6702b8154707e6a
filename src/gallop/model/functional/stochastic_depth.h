#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// Drop probabilities of `count` blocks, linear from 0 for the first to `last` for the last (Huang
/// et al., "Deep networks with stochastic depth", ECCV 2016, as in timm).
std::vector<double> stochastic_depth_rates(double last, int64_t count);

/// In training, sets each sample of x [N, ...] to 0 with probability p and scales the others by 1 /
/// (1 - p); otherwise returns x. The N random numbers are those of a fixed_dropout() of ones.
at::Tensor drop_samples(const at::Tensor& x, double p, bool training);

}  // namespace gallop::model::functional
