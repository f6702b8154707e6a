#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// While it lives, dropout() on this thread draws the numbers of one training step: those of
/// `seed_and_step`, int64 [2] on the CPU, and of how many dropouts the step has had before. What
/// the tensor holds is read whenever numbers are drawn, so a replayed step draws those of its own.
class DropoutScope {
 public:
  /// `share`, if defined, stands for the p of every dropout (fp32, no dimensions, in [0, 1)): one
  /// that changes from step to step.
  explicit DropoutScope(at::Tensor seed_and_step, at::Tensor share = {});
  ~DropoutScope();
  DropoutScope(const DropoutScope&) = delete;
  DropoutScope& operator=(const DropoutScope&) = delete;

 private:
  friend at::Tensor dropout(const at::Tensor& x, double p, bool training);

  friend bool dropout_varies();

  at::Tensor seed_and_step_, share_;
  int64_t calls_ = 0;
  DropoutScope* outer_;
};

/// Whether a scope on this thread has a share of its own.
bool dropout_varies();

/// In training a share p of x set to 0 and the rest multiplied by 1 / (1 - p); else x itself. By
/// gallop's kernel where it takes x (kernel/dropout.h), else by LibTorch's. Outside of any scope
/// the seed is drawn from LibTorch's default generator. A model without dropout (p of 0) stays
/// without, whatever the scope says.
at::Tensor dropout(const at::Tensor& x, double p, bool training);

}  // namespace gallop::model::functional
