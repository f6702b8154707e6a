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

/// Throws UsageError unless there is at least one parameter, names differ, and all are fp32 or fp64
/// of one type and device, each dense in memory, as the kernels step through raw memory.
void check_parameters(const NamedTensors& parameters);

/// One tensor of `value` a parameter, in the parameter's memory layout, named "PREFIX.NAME".
NamedTensors make_state(const char* prefix, const NamedTensors& parameters, double value = 0);

/// The parameters of an optimizer, what is kept for each, and how each is updated.
struct OptimizerParameters {
  NamedTensors parameters;
  std::vector<NamedTensors> states;  ///< One list for each kind, in the parameters' order.
  NamedTensors scales{};             ///< Of states in 8 bits; undefined elsewhere, or empty.
  ParameterOptions options;

  /// Turns the states of large parameters, all 0 yet, into ones in 8 bits, for this rule of
  /// kernel/update_rules.h. Throws UsageError where no kernel of ours updates them.
  void keep_in_8_bits(const std::string& rule);

  /// Fills in what the step of the parameters that have a gradient now takes. A gradient in another
  /// memory layout than its parameter is copied into the same one. `weight_decay`, if defined, is
  /// one that varies. Throws UsageError where a gradient is sparse or a parameter's layout is no
  /// longer that of its state.
  void put_into(kernel::OptimizerStep& step, const at::Tensor& weight_decay) const;
};

/// Whether our kernels can update such parameters: fp32, in main memory or on a GPU that has them.
bool has_own_kernel(const NamedTensors& parameters);

}  // namespace gallop::optim
