#include "gallop/tensor/tensor_memory.h"

#include <utility>

namespace gallop {

namespace {

thread_local TensorMemory* current_memory = nullptr;

}  // namespace

TensorMemoryScope::TensorMemoryScope(TensorMemory& memory)
    : before_(std::exchange(current_memory, &memory)) {}

TensorMemoryScope::~TensorMemoryScope() { current_memory = before_; }

TensorMemory* TensorMemoryScope::current() { return current_memory; }

}  // namespace gallop
