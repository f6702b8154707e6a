#include "unit/compile/tensor_bits.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gallop::compile {

namespace {

at::Tensor bits_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().contiguous();
  switch (dense.element_size()) {
    case 2: return dense.view(at::kShort);
    case 4: return dense.view(at::kInt);
    case 8: return dense.view(at::kLong);
    default: return dense;
  }
}

}  // namespace

std::string difference_of_bits(const at::Tensor& got, const at::Tensor& wanted) {
  if (got.scalar_type() != wanted.scalar_type()) {
    return fmt::format("is {} and should be {}", toString(got.scalar_type()),
                       toString(wanted.scalar_type()));
  }
  if (got.sizes() != wanted.sizes()) {
    return fmt::format("has sizes {} and should have {}", got.sizes(), wanted.sizes());
  }
  if (wanted.numel() > 0 && got.strides() != wanted.strides()) {
    return fmt::format("has strides {} and should have {}", got.strides(), wanted.strides());
  }
  const at::NoGradGuard no_grad;
  const at::Tensor a = bits_of(got), b = bits_of(wanted);
  if (at::equal(a, b)) return {};
  const at::Tensor differs =
      a.ne(b).logical_and(got.isnan().logical_and(wanted.isnan()).logical_not());
  const auto count = differs.sum().item<int64_t>();
  if (count == 0) return {};
  const at::Tensor error = (got.to(at::kDouble) - wanted.to(at::kDouble)).abs();
  return fmt::format("differs in {} of {} numbers, by {} at most", count, got.numel(),
                     error.max().item<double>());
}

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) {
    copies.push_back(tensor.detach().clone(at::MemoryFormat::Contiguous));
  }
  return copies;
}

std::vector<std::pair<size_t, int64_t>> sharing_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::pair<size_t, int64_t>> places;
  for (const at::Tensor& tensor : tensors) {
    size_t first = 0;
    while (!tensors[first].is_alias_of(tensor)) ++first;
    const auto byte = tensor.storage_offset() * static_cast<int64_t>(tensor.element_size());
    places.emplace_back(first, byte);
  }
  return places;
}

}  // namespace gallop::compile
