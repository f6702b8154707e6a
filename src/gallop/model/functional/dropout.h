#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/dropout.h"

namespace gallop::model::functional {

/// The source of the random numbers of a thread's next dropout.
struct DropoutPlace {
  at::Tensor seed_and_step;  ///< Undefined outside of any scope.
  int64_t calls = 0;
  at::Tensor share{};  ///< The scheduled p; see DropoutScope.
};

/// Returns the place of this thread's next dropout and counts it as drawn.
DropoutPlace next_place();

/// While it is alive, dropout() on this thread draws the random numbers of one training step, which
/// depend on `seed_and_step`, int64 [2] on the CPU, and on the number of preceding dropouts in the
/// step. The tensor is read at each draw, so that a replayed step draws its own numbers.
class DropoutScope {
 public:
  /// `share`, if defined, replaces the p of every dropout (fp32, no dimensions, in [0, 1)), for a p
  /// that changes from step to step.
  explicit DropoutScope(at::Tensor seed_and_step, at::Tensor share = {});
  /// Continues from a place, so that the same random numbers are drawn again.
  explicit DropoutScope(DropoutPlace place);
  ~DropoutScope();
  DropoutScope(const DropoutScope&) = delete;
  DropoutScope& operator=(const DropoutScope&) = delete;

  /// The place of this thread's scope.
  static DropoutPlace place();

 private:
  friend DropoutPlace next_place();
  friend bool dropout_varies();

  DropoutPlace place_;
  DropoutScope* outer_;
};

/// Whether a scope on this thread replaces p.
bool dropout_varies();

/// In training, sets each element of x to 0 with probability p and scales the others by 1 / (1 -
/// p); otherwise returns x. Uses gallop's kernel if it supports x (kernel/dropout.h), otherwise
/// LibTorch's. Outside of any scope, the seed is drawn from LibTorch's default generator. A p of 0
/// disables dropout even if the scope replaces p. `part`: see kernel::dropout().
at::Tensor dropout(const at::Tensor& x, double p, bool training,
                   const kernel::DropoutPart& part = {});

/// The dimensions from the largest stride to the smallest: dropout() draws for elements in the
/// order of memory.
std::vector<int64_t> memory_order(const at::Tensor& x);
/// The place of each dimension in an order.
std::vector<int64_t> places_in(const std::vector<int64_t>& order);

/// Like dropout() in training, but always with this p, ignoring the scope's.
at::Tensor fixed_dropout(const at::Tensor& x, double p);

}  // namespace gallop::model::functional
