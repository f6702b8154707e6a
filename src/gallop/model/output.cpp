#include "gallop/model/output.h"

#include "gallop/model/context_parallel.h"
#include "gallop/model/functional/linear.h"
#include "gallop/model/functional/tensor_parallel.h"
#include "gallop/model/tensor_parallel.h"

namespace gallop::model {

at::Tensor Output::logits() const {
  at::Tensor own = weight.defined() ? functional::linear(x, weight, {}) : x;
  if (context) return context->all_tokens(own);
  if (!part.parallel) return own;
  return functional::gather_parts(own, -1, part.classes, /*sums_gradient=*/false,
                                  part.parallel->group());
}

}  // namespace gallop::model
