#include "gallop/kernel/cpu_tensor.h"

#include <cstring>

#include <ATen/ops/empty.h>

namespace gallop::kernel {

bool is_plain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.layout() == at::kStrided &&
         (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16) &&
         tensor.numel() > 0 && tensor.is_contiguous();
}

std::pair<int64_t, int64_t> rows_and_columns(const at::Tensor& tensor) {
  const int64_t columns = tensor.size(-1);
  return {tensor.numel() / columns, columns};
}

Fp32Row::Fp32Row(const at::Tensor& tensor) {
  if (tensor.defined()) fp32_ = tensor.to(at::kFloat);
}

const float* Fp32Row::data() const {
  return fp32_.defined() ? fp32_.const_data_ptr<float>() : nullptr;
}

at::Tensor tensor_of(const float* numbers, int64_t count, at::ScalarType format) {
  const at::Tensor row = at::empty({count}, at::kFloat);
  std::memcpy(row.mutable_data_ptr<float>(), numbers, static_cast<size_t>(count) * sizeof(float));
  return row.to(format);
}

}  // namespace gallop::kernel
