#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

// The passes of update.h as operators whose step-dependent scalars are tensors, so that they can be
// part of a recorded step. All tensors are dense and on one device, the CPU or a GPU
// that has our kernels (kernel/cuda/launcher.h), those of one parameter in one memory layout;
// parameters and gradients are fp32 or bf16, states fp32 unless they have scales.
namespace gallop::kernel {

/// In OptimizerStep::scheduled_options: the weight decay. In its weight_decays: the scheduled
/// one.
inline constexpr int64_t kWeightDecayOption = -1;
inline constexpr double kScheduledDecay = -1;

/// Parameters that a rule of update_rules.h updates, in parallel lists.
struct OptimizerStep {
  std::string rule{};
  std::vector<double> options{};  ///< The rule's.
  std::vector<at::Tensor> parameters{}, gradients{};
  std::vector<at::Tensor> states{};  ///< The first of each parameter, then the second of each, ...
  /// By parameter: undefined, or fp32 [states, blocks] if its states are uint8, codes of
  /// StateMap with a scale for each kStateBlock elements in the order of memory. May be empty.
  std::vector<at::Tensor> scales{};
  std::vector<double> weight_decays{};  ///< kScheduledDecay for the one among `scheduled`.
  /// fp64, 0-dim: each replaces the option of this index in `scheduled_options`, and its value in
  /// `options`.
  std::vector<at::Tensor> scheduled{};
  std::vector<int64_t> scheduled_options{};
  std::vector<double> lr_factors{};  ///< Of `lr`; empty for 1.
  std::vector<int64_t> indices{};    ///< Of each parameter among `steps` and `running`.
  at::Tensor steps{};       ///< fp32: number of updates of each, which update() increments; may be
                            ///< undefined if nothing depends on it.
  at::Tensor running{};     ///< fp64 [parameters, n]: the rule's running scalars, if any.
  at::Tensor lr{};          ///< fp32, 0-dim, like the two that follow.
  at::Tensor grad_scale{};  ///< Divides the gradients; may be undefined.
  at::Tensor found_inf{};   ///< If defined and not 0, nothing is updated or counted.
  /// By parameter: a bf16 tensor of its layout that gets the rounded new value, or undefined.
  /// May be empty. Undefined for parameters that are bf16 themselves.
  std::vector<at::Tensor> bf16_copies{};
  /// For bf16 parameters, in order: bf16 tensors of their layout with the error of rounding
  /// to nearest (Kahan summation). Empty: errors are discarded.
  std::vector<at::Tensor> compensations{};
  /// int64 [2], a seed and the number of the step: if defined, bf16 parameters are rounded
  /// stochastically by a function of these, the parameter's index, and each element's
  /// position in memory. Excludes compensations.
  at::Tensor draws{};
};

/// Executes one step, which counts as an in-place change of the parameters, as LibTorch's operators
/// do. Returns the norm of the gradients before they are divided: fp64, 0-dim.
at::Tensor update(const OptimizerStep& step);

/// Euclidean norm of all tensors together, as norm() of update.h: fp64, 0-dim.
at::Tensor norm(at::TensorList tensors);

/// For tensors of which each process has some ranges of whole chunks (kNormChunk elements), on the
/// CPU: writes the sum of squares of the k-th chunk of tensors[i] to sums[first[i] + k], and 0 to
/// all other elements of `sums`, fp64.
void sums_of_squares(const at::Tensor& sums, at::TensorList tensors, at::IntArrayRef first);
/// norm() from the sums of all chunks of all tensors, with the same bits: fp64, 0-dim.
at::Tensor norm_of_sums(const at::Tensor& sums);

}  // namespace gallop::kernel
