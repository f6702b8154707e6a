#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// Whether the CPU kernels support its layout: fp32 or bf16, contiguous, not empty, on the CPU.
bool is_plain(const at::Tensor& tensor);

/// The number of rows, which is the product of the other sizes, and the size of the last dimension.
std::pair<int64_t, int64_t> rows_and_columns(const at::Tensor& tensor);

/// The data pointer; null if the tensor is undefined.
template <typename Number>
Number* data_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<Number*>(tensor.data_ptr()) : nullptr;
}

/// A tensor's elements as fp32, copied if they have another type.
class Fp32Row {
 public:
  explicit Fp32Row(const at::Tensor& tensor);
  /// Null if the tensor is undefined.
  const float* data() const;

 private:
  at::Tensor fp32_;
};

/// A tensor [count] of this data type with these elements.
at::Tensor tensor_of(const float* numbers, int64_t count, at::ScalarType format);

}  // namespace gallop::kernel
