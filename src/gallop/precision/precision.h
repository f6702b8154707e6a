#pragma once

#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::precision {

/// Number format of a step's matrix products and convolutions. Optimizer state, losses and
/// normalization stay in fp32, and weights as well, but for kBf16Weights, which is bf16 with
/// weights that have no other form; see keep_in_bf16().
enum class Precision { kFp32, kBf16, kBf16Weights, kFp16 };

const char* name_of(Precision precision);
/// "fp32", "bf16", "bf16-weights" or "fp16"; throws UsageError for anything else.
Precision parse_precision(const std::string& name);

/// Turns parameters of two dimensions or more into bf16 for good, with the memory order that they
/// have: before an optimizer or a step knows them. Those of one dimension stay in fp32: biases and
/// the scales and shifts of norms, which are few, and which kernels add in fp32.
void keep_in_bf16(const NamedTensors& parameters);

/// Runs the enclosing block in autocast, unless fp32. The cache of cast weights is dropped at the
/// end, as the next step's weights differ.
class AutocastGuard {
 public:
  AutocastGuard(Precision precision, c10::DeviceType device);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  c10::DeviceType device_;
  bool active_;
  bool previous_enabled_ = false;
  c10::ScalarType previous_dtype_ = c10::ScalarType::Float;
};

}  // namespace gallop::precision
