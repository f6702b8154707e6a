#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/layout.h"

namespace gallop::kernel {

/// Options of attention for every head; `cosines` as in AttentionKernels::copy, or null.
struct HeadOptions {
  int64_t tokens, width;
  bool causal;
  float scale;
  const float* cosines;
};

/// Queries, keys and values of a head, or their gradients: [tokens, width] each.
template <typename Number>
struct HeadParts {
  Matrix<Number> query, key, value;
};

/// Memory that is read after the current head, by cache lines: it is prefetched.
struct ReadSoon {
  static constexpr int64_t kParts = 3, kLine = 64;
  const char* parts[kParts];
  int64_t lines[kParts];
};

/// Attention of one head in bf16 by tiles of AMX or of registers; null on machines without
/// bf16 dot products. Call GemmKernels<Bf16>::begin before; `scratch` is aligned to a cache
/// line.
struct AttentionForwardTiles {
  int64_t (*scratch_bytes)(const HeadOptions& options);
  void (*run)(const HeadOptions& options, const HeadParts<const Bf16>& parts, const Matrix<Bf16>& y,
              float* log_sums, const ReadSoon& soon, void* scratch);
};
struct AttentionBackwardTiles {
  int64_t (*scratch_bytes)(const HeadOptions& options);
  void (*run)(const HeadOptions& options, const HeadParts<const Bf16>& parts,
              const Matrix<const Bf16>& y, const Matrix<const Bf16>& dy, const float* log_sums,
              const HeadParts<Bf16>& gradients, const ReadSoon& soon, void* scratch);
};

}  // namespace gallop::kernel
