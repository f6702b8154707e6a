#include "gallop/model/functional/first_order.h"

#include <string>

#include <ATen/core/grad_mode.h>

#include "gallop/base/error.h"

namespace gallop::model::functional {

void require_first_order(const char* name) {
  if (!at::GradMode::is_enabled()) return;
  throw UsageError(std::string(name) +
                   ": the gradient of a gradient was asked for, which its kernel does not have; "
                   "use fp64 tensors, for which LibTorch's operators are used");
}

}  // namespace gallop::model::functional
