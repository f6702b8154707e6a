#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::optim {

/// Parameters that are updated alike, in parallel lists as the fused kernels take them.
struct ParameterGroup {
  double weight_decay = 0;
  std::vector<std::string> names;  ///< Left empty by with_gradients().
  std::vector<size_t> indices;     ///< Position of each in the optimizer's parameters.
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients;            ///< Filled by with_gradients().
  std::vector<std::vector<at::Tensor>> states;  ///< One list for each kind of state.
};

/// Throws UsageError unless there is at least one parameter, names differ, and all are fp32 or fp64
/// of one type and device, each dense in memory, as the kernels step through raw memory.
void check_parameters(const NamedTensors& parameters);

/// One zero tensor a parameter, in the parameter's memory layout, named "PREFIX.NAME".
NamedTensors make_state(const char* prefix, const NamedTensors& parameters);

/// Splits the parameters by their weight decay: those of at most one dimension have none unless
/// `decay_1d`. `states` are what make_state() gave.
std::vector<ParameterGroup> group_by_decay(const NamedTensors& parameters,
                                           const std::vector<NamedTensors>& states,
                                           double weight_decay, bool decay_1d);

/// The part of a group that has a gradient now and that `wanted` (given an index) accepts. A
/// gradient in another memory layout than its parameter is copied into the same one. Throws
/// UsageError where a gradient is sparse or a parameter's layout is no longer that of its state.
ParameterGroup with_gradients(const ParameterGroup& group,
                              const std::function<bool(size_t)>& wanted = {});

/// What a loss scaler tells a step, in the form that the fused kernels take.
class SkipSignal {
 public:
  /// Each undefined or fp32 with one element.
  SkipSignal(const at::Tensor& grad_scale, const at::Tensor& found_inf);
  const std::optional<at::Tensor>& grad_scale() const { return grad_scale_; }
  /// Exactly 1 where the step is skipped, as the kernels compare with 1, and else 0.
  const std::optional<at::Tensor>& found_inf() const { return found_inf_; }

 private:
  std::optional<at::Tensor> grad_scale_;
  std::optional<at::Tensor> found_inf_;
};

/// Whether kernels of ours can update the group: fp32, in main memory or on a GPU that has them.
bool has_own_kernel(const ParameterGroup& group);

/// Counts of the steps that each parameter has had: fp32 zeros [parameters], on their device.
at::Tensor make_steps(const NamedTensors& parameters);

/// Adds 1 to the counts at `indices`, or nothing where the step is skipped; never waits for a GPU.
void count_step(const at::Tensor& steps, const std::vector<size_t>& indices,
                const SkipSignal& skip);

}  // namespace gallop::optim
