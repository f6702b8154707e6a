#pragma once

#include <optional>
#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::precision {

/// Number format of a step's matrix products and convolutions. Optimizer state, losses and
/// normalization stay in fp32, and weights as well, but for kBf16Weights, which is bf16 with
/// weights that have no other form; see keep_in_bf16(). tf32 is fp32 whose products a GPU takes
/// with 10 bits of fraction; fp8 is that in the linear layers that can, and bf16 in all else.
enum class Precision { kFp32, kTf32, kBf16, kBf16Weights, kFp16, kFp8 };

const char* name_of(Precision precision);
/// "fp32", "tf32", "bf16", "bf16-weights", "fp16" or "fp8"; throws UsageError for anything else.
Precision parse_precision(const std::string& name);

/// Throws DeviceError, which says what is missing, where a training cannot have this precision: on
/// a GPU of this compute capability (90 for 9.0), or without one on the CPU.
void require_available(Precision precision, std::optional<int> capability);

/// In which evaluations compute what was trained in `precision`: bf16 for fp8, whose scales follow
/// from all samples of a batch, so that no result depends on which stand in it together.
Precision for_evaluation(Precision precision);

/// Whether this thread's linear layers compute in fp8: within an AutocastGuard that says so.
bool linear_is_fp8();
void set_linear_is_fp8(bool on);

/// Turns parameters of two dimensions or more into bf16 for good, with the memory order that they
/// have: before an optimizer or a step knows them. Those of one dimension stay in fp32: biases and
/// the scales and shifts of norms, which are few, and which kernels add in fp32.
void keep_in_bf16(const NamedTensors& parameters);

/// While it lives, products and convolutions of fp32 tensors on a GPU are in TF32 if that is the
/// precision, else in fp32. LibTorch by itself takes fp32 for the first and TF32 for the second.
/// Of the whole process.
class Tf32Guard {
 public:
  Tf32Guard(Precision precision, c10::DeviceType device);
  ~Tf32Guard();
  Tf32Guard(const Tf32Guard&) = delete;
  Tf32Guard& operator=(const Tf32Guard&) = delete;

 private:
  bool active_, previous_products_ = false, previous_convolutions_ = false;
};

/// Runs the enclosing block in autocast, unless fp32 or tf32, with a Tf32Guard. The cache of cast
/// weights is dropped at the end, as the next step's weights differ.
class AutocastGuard {
 public:
  AutocastGuard(Precision precision, c10::DeviceType device);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  Tf32Guard tf32_;
  c10::DeviceType device_;
  bool active_;
  bool previous_enabled_ = false, previous_fp8_ = false;
  c10::ScalarType previous_dtype_ = c10::ScalarType::Float;
};

}  // namespace gallop::precision
