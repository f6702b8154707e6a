#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/optimizer_step.h"
#include "gallop/optim/groups.h"
#include "gallop/tensor/named_tensor.h"

// Internal to optim/: common handling of parameters.
namespace gallop::optim {

/// Smaller parameters keep fp32 states: they are sensitive, and the saving would be small.
inline constexpr int64_t kLeast8Bits = 4096;

/// Whether some parameters are bf16: weights without an fp32 copy.
bool has_bf16(const NamedTensors& parameters);

/// Throws UsageError unless there is at least one parameter, names are unique, and all are fp32 or
/// fp64 of one type and device and dense in memory, as kernels access raw memory. bf16 is allowed
/// besides fp32 if the optimizer `rounds`.
void check_parameters(const NamedTensors& parameters, bool rounds = false);

/// One tensor filled with `value` per parameter, in the parameter's memory layout, named
/// "PREFIX.NAME"; fp32 for a bf16 parameter. With `for_8_bits`, those that
/// OptimizerParameters::keep_in_8_bits() converts are on the meta device, without memory.
NamedTensors make_state(const char* prefix, const NamedTensors& parameters, double value = 0,
                        bool for_8_bits = false);

/// The parameters of an optimizer with their states and options.
struct OptimizerParameters {
  NamedTensors parameters;
  std::vector<NamedTensors> states;  ///< One list per kind of state, in the parameters' order.
  NamedTensors scales{};             ///< Of 8-bit states; undefined for others, or empty.
  NamedTensors compensations{};      ///< Of bf16 parameters; undefined for others, or empty.
  bool draws = false;                ///< Whether bf16 parameters are rounded stochastically.
  ParameterOptions options;

  /// Converts the states of large parameters, made for it and all 0, to 8 bits, for this rule of
  /// kernel/update_rules.h. Throws UsageError if none of our kernels updates them.
  void keep_in_8_bits(const std::string& rule);

  /// Prepares the rounding mode of optimizer.rounding: "auto", "stochastic", "kahan" or "nearest".
  /// Throws UsageError if there is nothing to round, or none of our kernels supports it.
  void round_by(const std::string& rounding);

  /// Fills in the step of the parameters that have a gradient. A gradient with another memory
  /// layout than its parameter is copied. `weight_decay`, if defined, is scheduled. Throws
  /// UsageError if a gradient is sparse, or a parameter's layout no longer matches its state.
  void put_into(kernel::OptimizerStep& step, const at::Tensor& weight_decay) const;
};

/// Whether our kernels can update these parameters: fp32 or bf16, on the CPU or on a GPU with
/// kernels.
bool has_own_kernel(const NamedTensors& parameters);

}  // namespace gallop::optim
