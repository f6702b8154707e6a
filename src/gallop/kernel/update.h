#pragma once

#include <cstdint>
#include <span>

#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// One parameter and its state, fp32 arrays of `size` numbers on the CPU, and what AdamW does with
/// them (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019):
///   g = gradient_scale * gradient
///   m = m + take1 * (g - m),  v = beta2 * v + take2 * g^2
///   p = keep * p - rate * m / (root_scale * sqrt(v) + eps)
struct AdamwTensor {
  float* parameter = nullptr;
  const float* gradient = nullptr;
  const Bf16* bf16_gradient = nullptr;  ///< If set, stands for `gradient`.
  float* exp_avg = nullptr;             ///< m
  float* exp_avg_sq = nullptr;          ///< v
  Bf16* shadow = nullptr;               ///< If set, gets the new parameter, rounded.
  int64_t size = 0;

  float gradient_scale = 1;
  float take1 = 0;  ///< 1 - beta1, from fp64: in fp32 that would lose half its digits.
  float beta2 = 0;
  float take2 = 0;  ///< take2 is 1 - beta2, likewise.
  float eps = 0;
  float keep = 1;        ///< 1 - lr * weight_decay
  float rate = 0;        ///< lr / (1 - beta1^step)
  float root_scale = 1;  ///< 1 / sqrt(1 - beta2^step)
};

/// The same for SGD:
///   g = gradient_scale * gradient + weight_decay * p
///   b = momentum * b + take * g
///   p = p - lr * (b, or with Nesterov g + momentum * b, or without momentum g)
struct SgdTensor {
  float* parameter = nullptr;
  const float* gradient = nullptr;
  const Bf16* bf16_gradient = nullptr;  ///< If set, stands for `gradient`.
  float* momentum_buffer = nullptr;     ///< b; null without momentum.
  Bf16* shadow = nullptr;               ///< If set, gets the new parameter, rounded.
  int64_t size = 0;

  float gradient_scale = 1;
  float lr = 0, weight_decay = 0, momentum = 0;
  float take = 1;  ///< 1 - dampening
  bool nesterov = false;
};

/// Updates all tensors in one pass by all threads; numbers below 2^-126 are 0 in it. Returns the
/// Euclidean norm of all gradients before they are scaled, which costs nothing here: their bits are
/// those of norm(). It is finite if and only if every gradient is.
double update(std::span<const AdamwTensor> tensors);
double update(std::span<const SgdTensor> tensors);

struct ConstArray {
  const float* data = nullptr;
  int64_t size = 0;
  const Bf16* bf16_data = nullptr;  ///< If set, stands for `data`.
};

/// Euclidean norm of all arrays together. The sum is taken over fixed chunks in a fixed order, so
/// that its bits do not depend on the number of threads.
double norm(std::span<const ConstArray> arrays);

}  // namespace gallop::kernel
