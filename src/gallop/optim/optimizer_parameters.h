#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/optimizer_step.h"
#include "gallop/optim/groups.h"
#include "gallop/tensor/named_tensor.h"

// Only for sources of optim/: what optimizers do with their parameters.
namespace gallop::optim {

/// Smaller parameters keep their states in fp32: they are sensitive, and little would be gained.
inline constexpr int64_t kLeast8Bits = 4096;

/// Whether some parameters are bf16: weights that have no copy in fp32.
bool has_bf16(const NamedTensors& parameters);

/// Throws UsageError unless there is at least one parameter, names differ, and all are fp32 or fp64
/// of one type and device, each dense in memory, as the kernels step through raw memory. Beside
/// fp32 there may be bf16 where the optimizer `rounds` them.
void check_parameters(const NamedTensors& parameters, bool rounds = false);

/// One tensor of `value` a parameter, in the parameter's memory layout, named "PREFIX.NAME"; that
/// of a bf16 parameter is fp32.
NamedTensors make_state(const char* prefix, const NamedTensors& parameters, double value = 0);

/// The parameters of an optimizer, what is kept for each, and how each is updated.
struct OptimizerParameters {
  NamedTensors parameters;
  std::vector<NamedTensors> states;  ///< One list for each kind, in the parameters' order.
  NamedTensors scales{};             ///< Of states in 8 bits; undefined elsewhere, or empty.
  NamedTensors compensations{};      ///< Of bf16 parameters; undefined elsewhere, or empty.
  bool draws = false;                ///< bf16 parameters are rounded stochastically.
  ParameterOptions options;

  /// Turns the states of large parameters, all 0 yet, into ones in 8 bits, for this rule of
  /// kernel/update_rules.h. Throws UsageError where no kernel of ours updates them.
  void keep_in_8_bits(const std::string& rule);

  /// Makes what the option optimizer.rounding asks for: "auto", "stochastic", "kahan" or "nearest".
  /// Throws UsageError where there is nothing to be rounded, or no kernel of ours that rounds.
  void round_by(const std::string& rounding);

  /// Fills in what the step of the parameters that have a gradient now takes. A gradient in another
  /// memory layout than its parameter is copied into the same one. `weight_decay`, if defined, is
  /// one that varies. Throws UsageError where a gradient is sparse or a parameter's layout is no
  /// longer that of its state.
  void put_into(kernel::OptimizerStep& step, const at::Tensor& weight_decay) const;
};

/// Whether our kernels can update such parameters: fp32 or bf16, in main memory or on a GPU that
/// has them.
bool has_own_kernel(const NamedTensors& parameters);

}  // namespace gallop::optim
