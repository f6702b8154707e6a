#include "gallop/model/output.h"

#include "gallop/model/functional/linear.h"

namespace gallop::model {

at::Tensor Output::logits() const {
  return weight.defined() ? functional::linear(x, weight, {}) : x;
}

}  // namespace gallop::model
