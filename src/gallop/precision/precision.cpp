#include "gallop/precision/precision.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::precision {

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::kFp32: return "fp32";
    case Precision::kBf16: return "bf16";
    case Precision::kBf16Weights: return "bf16-weights";
    case Precision::kFp16: return "fp16";
  }
  throw InternalError("a precision without a name");
}

Precision parse_precision(const std::string& name) {
  std::vector<std::string> names;
  for (const Precision precision :
       {Precision::kFp32, Precision::kBf16, Precision::kBf16Weights, Precision::kFp16}) {
    if (name == name_of(precision)) return precision;
    names.push_back(name_of(precision));
  }
  throw UsageError(fmt::format("unknown precision '{}'; known are {}", printable(name),
                               join_names(names, "and")));
}

void keep_in_bf16(const NamedTensors& parameters) {
  for (const auto& [name, tensor] : parameters) {
    if (tensor.dim() < 2) continue;
    tensor.mutable_grad().reset();
    // Set as data, they stay the tensors that the model knows.
    at::Tensor same = tensor;
    same.set_data(tensor.detach().to(c10::kBFloat16));
  }
}

AutocastGuard::AutocastGuard(Precision precision, c10::DeviceType device)
    : device_(device), active_(precision != Precision::kFp32) {
  if (!active_) return;
  previous_enabled_ = at::autocast::is_autocast_enabled(device_);
  previous_dtype_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_,
                                   precision == Precision::kFp16 ? c10::kHalf : c10::kBFloat16);
  at::autocast::increment_nesting();
}

AutocastGuard::~AutocastGuard() {
  if (!active_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, previous_enabled_);
  at::autocast::set_autocast_dtype(device_, previous_dtype_);
}

}  // namespace gallop::precision
