#pragma once

#include "gallop/model/functional/layer_norm.h"

namespace gallop::model::functional {

/// The sum of summands whose layer norm is computed by another process: with the bits that
/// layer_norm() gives to the sum and to the gradients.
at::Tensor sum_before_norm(const Summands& in);

}  // namespace gallop::model::functional
