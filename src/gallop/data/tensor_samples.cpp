#include "gallop/data/tensor_samples.h"

#include <cstring>

#include <ATen/ops/ne.h>
#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::data {

namespace {

RowShape row_of(const at::Tensor& rows) {
  return {.sizes = rows.sizes().slice(1).vec(), .dtype = rows.scalar_type()};
}

const at::Tensor& checked(const at::Tensor& inputs, const at::Tensor& targets) {
  for (const at::Tensor& tensor : {inputs, targets}) {
    if (!tensor.defined() || tensor.dim() == 0 || !tensor.is_cpu()) {
      throw UsageError("samples need tensors on the CPU with a row for each sample");
    }
  }
  if (inputs.size(0) == targets.size(0)) return inputs;
  throw UsageError(fmt::format("there are {} inputs, but {} targets; each sample has one of each",
                               inputs.size(0), targets.size(0)));
}

void copy_row(const at::Tensor& rows, int64_t index, void* out) {
  const auto bytes = rows.nbytes() / static_cast<size_t>(rows.size(0));
  std::memcpy(out,
              static_cast<const char*>(rows.const_data_ptr()) + static_cast<size_t>(index) * bytes,
              bytes);
}

}  // namespace

TensorSamples::TensorSamples(const at::Tensor& inputs, const at::Tensor& targets)
    : Samples({{.name = "input", .shape = row_of(checked(inputs, targets))},
               {.name = "target", .shape = row_of(targets)}}),
      inputs_(inputs.detach().contiguous()),
      targets_(targets.detach().contiguous()),
      counts_(targets.scalar_type() == at::kLong && targets.dim() == 1 &&
              targets.ne(kIgnoredTarget).all().item<bool>()) {}

bool TensorSamples::fill(int64_t index, int64_t /*epoch*/, const SampleRow& row,
                         Scratch& /*scratch*/) const {
  copy_row(inputs_, index, row.raw(0));
  copy_row(targets_, index, row.raw(1));
  return true;
}

}  // namespace gallop::data
