#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// Arrays of a momentum and of a gradient.
struct MuonNumbers {
  float* momentum = nullptr;
  const float* gradient = nullptr;
  float scale = 1;  ///< Factor of the gradient.
  float memory = 0;
  bool nesterov = false;
  int64_t count = 0;
};

/// Muon's passes over memory, except its GEMMs.
struct MuonKernels {
  /// Updates the momentum; returns the sum of squares of the direction, which is the momentum or,
  /// with Nesterov momentum, memory * momentum + (1 - memory) * gradient.
  double (*move)(const MuonNumbers& at);
  /// Writes the direction times `factor`, for an updated momentum.
  void (*put_fp32)(const MuonNumbers& at, float factor, float* to);
  void (*put_bf16)(const MuonNumbers& at, float factor, Bf16* to);
  /// parameter = parameter * keep - rate * change
  void (*update_fp32)(float* parameter, const float* change, float keep, float rate, int64_t count);
  void (*update_bf16)(float* parameter, const Bf16* change, float keep, float rate, int64_t count);
};

}  // namespace gallop::kernel
