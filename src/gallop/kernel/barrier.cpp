#include "gallop/kernel/barrier.h"

#include <ATen/ops/clone.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "gallop/kernel/operator.h"

namespace gallop::kernel {

namespace {

at::Tensor copy(const at::Tensor& x) { return x.clone(); }

}  // namespace

bool is_recorded() { return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Fake); }

at::Tensor barrier(const at::Tensor& x) {
  static const Operator kBarrier("barrier(Tensor x) -> Tensor", copy, copy, copy);
  return is_recorded() ? kBarrier(x.detach()) : x.detach();
}

}  // namespace gallop::kernel
