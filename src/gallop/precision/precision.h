#pragma once

#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace gallop::precision {

/// Number format of a step's matrix products and convolutions. Weights, optimizer state, losses and
/// normalization stay in fp32.
enum class Precision { kFp32, kBf16, kFp16 };

const char* name_of(Precision precision);
/// "fp32", "bf16" or "fp16"; throws UsageError for anything else.
Precision parse_precision(const std::string& name);

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
