#include "gallop/compile/tensor_in.h"

#include <c10/core/ScalarTypeToTypeMeta.h>

namespace gallop::compile {

at::Tensor tensor_in(const at::Tensor& base, at::ScalarType dtype, at::IntArrayRef sizes,
                     at::IntArrayRef strides, int64_t offset, bool is_conj) {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(base.storage()),
      base.key_set().remove(c10::DispatchKey::Conjugate), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  if (is_conj) tensor._set_conj(true);
  return tensor;
}

}  // namespace gallop::compile
