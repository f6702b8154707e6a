#include "gallop/precision/precision.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::precision {

namespace {

constexpr Precision kAll[] = {Precision::kFp32,        Precision::kTf32, Precision::kBf16,
                              Precision::kBf16Weights, Precision::kFp16, Precision::kFp8};

// Global like autocast, as it is read deep in a model.
thread_local bool linear_fp8 = false;

// The minimum compute capability for a precision; 0 if the CPU supports it as well.
struct Needed {
  int capability = 0;
  const char* generations = "";
};

Needed needed_by(Precision precision) {
  if (precision == Precision::kTf32) return {80, "Ampere or newer"};
  if (precision == Precision::kFp8) return {89, "Ada, Hopper or newer"};
  return {};
}

std::string text_of(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

c10::ScalarType autocast_format(Precision precision) {
  return precision == Precision::kFp16 ? c10::kHalf : c10::kBFloat16;
}

}  // namespace

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::kFp32: return "fp32";
    case Precision::kTf32: return "tf32";
    case Precision::kBf16: return "bf16";
    case Precision::kBf16Weights: return "bf16-weights";
    case Precision::kFp16: return "fp16";
    case Precision::kFp8: return "fp8";
  }
  throw InternalError("a precision without a name");
}

Precision parse_precision(const std::string& name) {
  std::vector<std::string> names;
  for (const Precision precision : kAll) {
    if (name == name_of(precision)) return precision;
    names.push_back(name_of(precision));
  }
  throw UsageError(fmt::format("unknown precision '{}'; known are {}", printable(name),
                               join_names(names, "and")));
}

void require_available(Precision precision, std::optional<int> capability) {
  const Needed needed = needed_by(precision);
  if (capability.value_or(0) >= needed.capability) return;
  throw DeviceError(
      fmt::format("train.precision is {}, which requires an NVIDIA GPU of compute capability {} or "
                  "higher ({}), "
                  "but this training runs on {}; use train.precision={}, or auto",
                  name_of(precision), text_of(needed.capability), needed.generations,
                  capability ? "a GPU of " + text_of(*capability) : "the CPU",
                  precision == Precision::kFp8 ? "bf16" : "fp32"));
}

Precision for_evaluation(Precision precision) {
  return precision == Precision::kFp8 ? Precision::kBf16 : precision;
}

bool linear_is_fp8() { return linear_fp8; }
void set_linear_is_fp8(bool on) { linear_fp8 = on; }

Tf32Guard::Tf32Guard(Precision precision, c10::DeviceType device)
    : active_(device == c10::DeviceType::CUDA) {
  if (!active_) return;
  at::Context& context = at::globalContext();
  previous_products_ = context.allowTF32CuBLAS();
  previous_convolutions_ = context.allowTF32CuDNN();
  context.setAllowTF32CuBLAS(precision == Precision::kTf32);
  context.setAllowTF32CuDNN(precision == Precision::kTf32);
}

Tf32Guard::~Tf32Guard() {
  if (!active_) return;
  at::globalContext().setAllowTF32CuBLAS(previous_products_);
  at::globalContext().setAllowTF32CuDNN(previous_convolutions_);
}

void keep_in_bf16(const NamedTensors& parameters) {
  for (const auto& [name, tensor] : parameters) {
    if (tensor.dim() < 2) continue;
    tensor.mutable_grad().reset();
    // set_data() keeps the tensor objects that the model knows.
    at::Tensor same = tensor;
    same.set_data(tensor.detach().to(c10::kBFloat16));
  }
}

AutocastGuard::AutocastGuard(Precision precision, c10::DeviceType device)
    : tf32_(precision, device),
      device_(device),
      active_(precision != Precision::kFp32 && precision != Precision::kTf32) {
  if (!active_) return;
  previous_enabled_ = at::autocast::is_autocast_enabled(device_);
  previous_dtype_ = at::autocast::get_autocast_dtype(device_);
  previous_fp8_ = linear_fp8;
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, autocast_format(precision));
  at::autocast::increment_nesting();
  linear_fp8 = precision == Precision::kFp8;
}

AutocastGuard::~AutocastGuard() {
  if (!active_) return;
  linear_fp8 = previous_fp8_;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, previous_enabled_);
  at::autocast::set_autocast_dtype(device_, previous_dtype_);
}

}  // namespace gallop::precision
