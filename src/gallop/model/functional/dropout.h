#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// While it lives, dropout() on this thread draws the numbers of one training step: those of
/// `seed_and_step`, int64 [2] on the CPU, and of how many dropouts the step has had before. What
/// the tensor holds is read whenever numbers are drawn, so a replayed step draws those of its own.
class DropoutScope {
 public:
  explicit DropoutScope(at::Tensor seed_and_step);
  ~DropoutScope();
  DropoutScope(const DropoutScope&) = delete;
  DropoutScope& operator=(const DropoutScope&) = delete;

 private:
  friend at::Tensor dropout(const at::Tensor& x, double p, bool training);

  at::Tensor seed_and_step_;
  int64_t calls_ = 0;
  DropoutScope* outer_;
};

/// In training a share p of x set to 0 and the rest multiplied by 1 / (1 - p); else x itself. By
/// gallop's kernel where it takes x (kernel/dropout.h), else by LibTorch's. Outside of any scope
/// the seed is drawn from LibTorch's default generator.
at::Tensor dropout(const at::Tensor& x, double p, bool training);

}  // namespace gallop::model::functional
