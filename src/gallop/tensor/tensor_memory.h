#pragma once

#include <ATen/core/Tensor.h>

namespace gallop {

/// Makes the tensors of what is created one after the other and must not be there as a whole.
class TensorMemory {
 public:
  virtual ~TensorMemory() = default;
  /// A contiguous tensor in fp32, all of whose values must be written before the next call, unless
  /// it is on the meta device.
  virtual at::Tensor empty(at::IntArrayRef sizes) = 0;
};

/// While it lives, new parameters of models (model/initializer.h) are created in this memory on
/// this thread.
class TensorMemoryScope {
 public:
  explicit TensorMemoryScope(TensorMemory& memory);
  ~TensorMemoryScope();
  TensorMemoryScope(const TensorMemoryScope&) = delete;
  TensorMemoryScope& operator=(const TensorMemoryScope&) = delete;

  /// Null outside of any scope.
  static TensorMemory* current();

 private:
  TensorMemory* before_;
};

}  // namespace gallop
