#include "gallop/parallel/power_sgd.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/base/philox.h"
#include "gallop/parallel/packed.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

// A lower compression ratio is not worth the GEMMs.
constexpr int64_t kLeastSaving = 2;

// The gradient as [first dimension, rest], if its rows are contiguous in memory.
std::optional<at::Tensor> as_matrix(const at::Tensor& gradient, int64_t rank) {
  if (gradient.dim() < 2 || gradient.scalar_type() != at::kFloat) return {};
  const int64_t rows = gradient.size(0), columns = gradient.numel() / rows;
  if (gradient.stride(0) != columns || !gradient.is_non_overlapping_and_dense()) return {};
  if (rows * columns < kLeastSaving * rank * (rows + columns)) return {};
  return gradient.as_strided({rows, columns}, {columns, 1}, gradient.storage_offset());
}

// Orthonormalizes the columns (Gram-Schmidt).
void orthogonalize(const at::Tensor& matrix) {
  constexpr double kLeastLength = 1e-20;
  for (int64_t i = 0; i < matrix.size(1); ++i) {
    const at::Tensor column = matrix.select(1, i);
    column.div_(column.norm().add(kLeastLength));
    if (i + 1 == matrix.size(1)) return;
    const at::Tensor rest = matrix.slice(1, i + 1);
    rest.sub_(column.unsqueeze(1).mul(at::matmul(column.unsqueeze(0), rest)));
  }
}

void fill_with_random_numbers(const at::Tensor& tensor, uint64_t seed) {
  Philox random(seed, Purpose::kInit, 0, 0);
  const at::Tensor made = at::empty(tensor.sizes(), at::kFloat);
  auto* const numbers = made.mutable_data_ptr<float>();
  for (int64_t i = 0; i < made.numel(); ++i) {
    numbers[i] = static_cast<float>(random.next_u64() >> 40) * 0x1p-24F - 0.5F;
  }
  tensor.copy_(made);
}

// Names by the index among all gradients, which does not depend on buckets.
std::string error_name(uint64_t number) { return fmt::format("error.{}", number); }
std::string right_name(uint64_t number) { return fmt::format("right.{}", number); }

}  // namespace

PowerSgd::PowerSgd(const std::vector<at::Tensor>& gradients, int64_t rank, int processes,
                   uint64_t seed)
    : processes_(processes) {
  int64_t left_count = 0, right_count = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const auto matrix = as_matrix(gradients[i], rank);
    if (!matrix) {
      others_.push_back(gradients[i]);
      continue;
    }
    matrices_.push_back({.gradient = *matrix,
                         .error = at::zeros(matrix->sizes(), matrix->options()),
                         .seed = seed + i});
    left_count += matrix->size(0) * rank;
    right_count += matrix->size(1) * rank;
  }
  if (gradients.empty()) return;
  const auto options = gradients.front().options().requires_grad(false);
  lefts_ = at::zeros({left_count}, options);
  rights_ = at::zeros({right_count}, options);
  int64_t left = 0, right = 0;
  for (Matrix& matrix : matrices_) {
    const int64_t rows = matrix.gradient.size(0), columns = matrix.gradient.size(1);
    matrix.left = lefts_.slice(0, left, left + rows * rank).view({rows, rank});
    matrix.right = rights_.slice(0, right, right + columns * rank).view({columns, rank});
    fill_with_random_numbers(matrix.right, matrix.seed);
    matrix.first_right = matrix.right.clone();
    left += rows * rank;
    right += columns * rank;
  }
  rest_ = at::zeros({count_numbers(others_)}, options);
  places_ = places_in(rest_, 0, others_);
}

void PowerSgd::start() {
  for (Matrix& matrix : matrices_) {
    matrix.gradient.add_(matrix.error);
    orthogonalize(matrix.right);
    matrix.left.copy_(at::matmul(matrix.gradient, matrix.right));
  }
  copy_all(others_, places_);
  if (!matrices_.empty()) all_reduce_async(lefts_);
  if (!others_.empty()) all_reduce_async(rest_);
}

void PowerSgd::finish() {
  if (!others_.empty()) {
    wait_tensor(rest_);
    copy_all(places_, others_);
  }
  if (matrices_.empty()) return;
  wait_tensor(lefts_);
  for (Matrix& matrix : matrices_) {
    orthogonalize(matrix.left);
    matrix.right.copy_(at::matmul(matrix.gradient.t(), matrix.left));
  }
  all_reduce_async(rights_);
  wait_tensor(rights_);
  for (Matrix& matrix : matrices_) {
    const at::Tensor sum = at::matmul(matrix.left, matrix.right.t());
    // A gradient that is not finite, of any process, must not stay in the errors and factors.
    const at::Tensor is_finite = matrix.right.isfinite().all();
    matrix.error.copy_(at::where(is_finite, matrix.gradient.sub(sum, 1.0 / processes_), 0));
    matrix.right.copy_(at::where(is_finite, matrix.right, matrix.first_right));
    matrix.gradient.copy_(sum);
  }
}

void PowerSgd::add_first_sums(std::vector<at::Tensor>& all) const {
  if (!matrices_.empty()) all.push_back(lefts_);
  if (!others_.empty()) all.push_back(rest_);
}

void PowerSgd::add_second_sums(std::vector<at::Tensor>& all) const {
  if (!matrices_.empty()) all.push_back(rights_);
}

void PowerSgd::forget() {
  for (Matrix& matrix : matrices_) {
    matrix.right.copy_(matrix.first_right);
    matrix.error.zero_();
  }
}

NamedTensors PowerSgd::rank_state() const {
  NamedTensors all;
  for (const Matrix& matrix : matrices_) {
    all.push_back({error_name(matrix.seed), matrix.error});
    all.push_back({right_name(matrix.seed), matrix.right});
  }
  return all;
}

void PowerSgd::add_rank_state(const NamedTensors& saved, double share) {
  std::map<std::string, at::Tensor> by_name;
  for (const auto& [name, tensor] : saved) by_name[name] = tensor;
  for (Matrix& matrix : matrices_) {
    const auto error = by_name.find(error_name(matrix.seed));
    if (error != by_name.end()) matrix.error.add_(error->second, share);
    const auto right = by_name.find(right_name(matrix.seed));
    if (right != by_name.end()) matrix.right.copy_(right->second);
  }
}

NamedTensors PowerSgd::state() const {
  NamedTensors all;
  for (const auto& [name, tensor] :
       {std::pair("lefts", &lefts_), std::pair("rights", &rights_), std::pair("rest", &rest_)}) {
    if (tensor->defined() && tensor->numel() > 0) all.push_back({name, *tensor});
  }
  for (size_t i = 0; i < matrices_.size(); ++i) {
    all.push_back({fmt::format("error.{}", i), matrices_[i].error});
  }
  return all;
}

}  // namespace gallop::parallel
