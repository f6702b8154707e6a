#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

// The passes of update.h as operators, whose numbers that change from step to step are tensors: so
// they can be part of a recorded step. All tensors are dense and on one device, the CPU or a GPU
// that has our kernels (kernel/cuda/launcher.h), those of one parameter in one memory layout;
// parameters and gradients are fp32 or bf16, states fp32 unless they have scales.
namespace gallop::kernel {

/// Among OptimizerStep::scheduled_options, the weight decay; among its weight_decays, the one that
/// varies.
inline constexpr int64_t kWeightDecayOption = -1;
inline constexpr double kScheduledDecay = -1;

/// Parameters that a rule of update_rules.h updates, in parallel lists.
struct OptimizerStep {
  std::string rule{};
  std::vector<double> options{};  ///< The rule's.
  std::vector<at::Tensor> parameters{}, gradients{};
  std::vector<at::Tensor> states{};  ///< The first of each parameter, then the second of each, ...
  /// By parameter: undefined, or fp32 [states, blocks] where its states are uint8, codes of
  /// StateMap in units of these for each kStateBlock numbers in the order of memory. May be empty.
  std::vector<at::Tensor> scales{};
  std::vector<double> weight_decays{};  ///< kScheduledDecay for the one among `scheduled`.
  /// fp64, no dimensions: each stands for the option of this number in `scheduled_options`, and for
  /// what `options` has there.
  std::vector<at::Tensor> scheduled{};
  std::vector<int64_t> scheduled_options{};
  std::vector<double> lr_factors{};  ///< Of `lr`; empty for 1.
  std::vector<int64_t> indices{};    ///< Of each parameter among `steps` and `running`.
  at::Tensor steps{};       ///< fp32: how often each has been updated, which this counts. May be
                            ///< undefined where nothing depends on it.
  at::Tensor running{};     ///< fp64 [parameters, n]: the rule's running numbers, if it has any.
  at::Tensor lr{};          ///< fp32, no dimensions, as the two that follow.
  at::Tensor grad_scale{};  ///< Divides the gradients; may be undefined.
  at::Tensor found_inf{};   ///< If defined and not 0, nothing is updated nor counted.
  /// By parameter: a bf16 tensor of its layout that gets what it is then, rounded, or undefined.
  /// May be empty. None has a parameter that is bf16 itself.
  std::vector<at::Tensor> bf16_copies{};
  /// Of bf16 parameters, one behind the other: bf16 tensors of their layout that keep what rounding
  /// to the nearest loses (Kahan's summation). Empty: nothing is kept.
  std::vector<at::Tensor> compensations{};
  /// int64 [2], a seed and the number of the step: if defined, bf16 parameters are rounded up or
  /// down by random numbers that are a function of these, the parameter's index, and each number's
  /// place in memory. No compensations then.
  at::Tensor draws{};
};

/// One step, which counts as a change in place of the parameters, as those of LibTorch's operators
/// do. Returns the norm of the gradients before they are divided: fp64, no dimensions.
at::Tensor update(const OptimizerStep& step);

/// Euclidean norm of all of them together, as norm() of update.h: fp64, no dimensions.
at::Tensor norm(at::TensorList tensors);

}  // namespace gallop::kernel
