#include "gallop/data/function_samples.h"

#include <cstring>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"

namespace gallop::data {

namespace {

std::string describe_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return fmt::format("{} [{}]{}", c10::toString(tensor.scalar_type()),
                     fmt::join(tensor.sizes(), ", "),
                     tensor.is_cpu() ? "" : " on " + tensor.device().str());
}

void check_target(const at::Tensor& target, int64_t classes) {
  if (classes > 0) {
    if (target.scalar_type() == at::kLong && target.dim() == 0) return;
    throw UsageError(fmt::format("targets are {}; with classes, a target is one label, Long []",
                                 describe_tensor(target)));
  }
  if (target.is_floating_point() && target.dim() <= 1) return;
  throw UsageError(fmt::format(
      "targets are {}; they must be numbers, Float [] or [D], or labels of named classes",
      describe_tensor(target)));
}

Sample first_sample(int64_t size, const SampleFunction& function, int64_t classes) {
  if (size < 1) throw UsageError(fmt::format("{} samples; at least one is needed", size));
  const at::NoGradGuard no_grad;
  Sample first = function(0, 0);
  for (const at::Tensor& tensor : {first.input, first.target}) {
    if (tensor.defined() && tensor.is_cpu()) continue;
    throw UsageError(fmt::format("a tensor of sample 0 is {}; samples are tensors on the CPU",
                                 describe_tensor(tensor)));
  }
  check_target(first.target, classes);
  return first;
}

Fields fields_of(const Sample& first) {
  const at::Tensor& target = first.target;
  const bool is_number = target.is_floating_point() && target.dim() == 0;
  return {{.name = "input",
           .shape = {.sizes = first.input.sizes().vec(), .dtype = first.input.scalar_type()}},
          {.name = "target",
           .shape = {.sizes = is_number ? std::vector<int64_t>{1} : target.sizes().vec(),
                     .dtype = target.scalar_type()}}};
}

void copy(const at::Tensor& tensor, void* out) {
  const at::Tensor contiguous = tensor.contiguous();
  std::memcpy(out, contiguous.const_data_ptr(), contiguous.nbytes());
}

void require_same(const char* what, int64_t index, const at::Tensor& tensor, c10::IntArrayRef sizes,
                  c10::ScalarType type) {
  if (tensor.defined() && tensor.is_cpu() && tensor.sizes() == sizes &&
      tensor.scalar_type() == type) {
    return;
  }
  throw DataError(fmt::format(
      "the {} of sample {} is {}, that of the first is {} [{}]; all samples "
      "need the same sizes and type",
      what, index, describe_tensor(tensor), c10::toString(type), fmt::join(sizes, ", ")));
}

}  // namespace

FunctionSamples::FunctionSamples(int64_t size, const SampleFunction& function, int64_t classes)
    : FunctionSamples(size, first_sample(size, function, classes), function, classes) {}

FunctionSamples::FunctionSamples(int64_t size, const Sample& first, const SampleFunction& function,
                                 int64_t classes)
    : Samples(fields_of(first)),
      size_(size),
      function_(function),
      classes_(classes),
      target_sizes_(first.target.sizes().vec()) {}

bool FunctionSamples::fill(int64_t index, int64_t epoch, const SampleRow& row,
                           Scratch& /*scratch*/) const {
  const at::NoGradGuard no_grad;
  const auto [input, target] = function_(index, epoch);
  const RowShape& shape = fields().input().shape;
  require_same("input", index, input, shape.sizes, shape.dtype);
  require_same("target", index, target, target_sizes_, fields().target().shape.dtype);
  if (classes_ > 0) {
    const auto label = target.item<int64_t>();
    if (label < 0 || label >= classes_) {
      throw DataError(fmt::format("sample {} has the label {}; labels are 0 to {}", index, label,
                                  classes_ - 1));
    }
  }
  copy(input, row.raw(0));
  copy(target, row.raw(1));
  return true;
}

}  // namespace gallop::data
