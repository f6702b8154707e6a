#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

namespace gallop {

/// A tensor [elements] of zeros on the CPU in whole pages of memory, which can be returned to the
/// system while the addresses stay valid. Throws c10::Error, as every allocation of a tensor, if
/// there is not enough address space.
at::Tensor zeros_in_pages(int64_t elements, c10::ScalarType type);

/// Whether a tensor lies in such memory.
bool lies_in_pages(const at::Tensor& tensor);

/// Returns those pages to the system that consist only of elements [begin, end) of such a tensor.
/// They are zeros afterwards, and take memory again once they are written.
void release_pages_of(const at::Tensor& tensor, int64_t begin, int64_t end);

}  // namespace gallop
