#include "gallop/model/output.h"

#include <ATen/ops/linear.h>

namespace gallop::model {

at::Tensor Output::logits() const { return weight.defined() ? at::linear(x, weight) : x; }

}  // namespace gallop::model
