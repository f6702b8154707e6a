#pragma once

#include <optional>
#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::precision {

/// The data type of a step's GEMMs and convolutions. Optimizer state, losses and normalization stay
/// in fp32, and so do weights, except for kBf16Weights: bf16 with weights that have no fp32 copy;
/// see keep_in_bf16(). tf32 is fp32 with GEMM inputs rounded to 10 bits of mantissa on GPUs; fp8 is
/// used in supported linear layers, with bf16 elsewhere.
enum class Precision { kFp32, kTf32, kBf16, kBf16Weights, kFp16, kFp8 };

const char* name_of(Precision precision);
/// "fp32", "tf32", "bf16", "bf16-weights", "fp16" or "fp8"; throws UsageError for anything else.
Precision parse_precision(const std::string& name);

/// Throws DeviceError, with what is missing, if this precision is unavailable: on a GPU of this
/// compute capability (90 for 9.0), or on the CPU if none is given.
void require_available(Precision precision, std::optional<int> capability);

/// The precision for evaluating a model trained in `precision`: bf16 for fp8, whose scales depend
/// on all samples of a batch, so that results do not depend on the composition of batches.
Precision for_evaluation(Precision precision);

/// Whether this thread's linear layers compute in fp8: within an AutocastGuard for fp8.
bool linear_is_fp8();
void set_linear_is_fp8(bool on);

/// Converts parameters with two or more dimensions to bf16 permanently, with the same memory
/// format; call it before an optimizer or a step uses them. One-dimensional parameters stay in
/// fp32: biases and the scales and shifts of norms are few, and kernels add them in fp32.
void keep_in_bf16(const NamedTensors& parameters);

/// During its lifetime, fp32 GEMMs and convolutions on GPUs use TF32 if that is the precision,
/// otherwise fp32. LibTorch's defaults are fp32 for GEMMs and TF32 for convolutions. Affects the
/// whole process.
class Tf32Guard {
 public:
  Tf32Guard(Precision precision, c10::DeviceType device);
  ~Tf32Guard();
  Tf32Guard(const Tf32Guard&) = delete;
  Tf32Guard& operator=(const Tf32Guard&) = delete;

 private:
  bool active_, previous_products_ = false, previous_convolutions_ = false;
};

/// Enables autocast in the enclosing block, except for fp32 and tf32, with a Tf32Guard. Clears the
/// cache of cast weights at the end, as the next step's weights differ.
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
